"""The tests, importable as `tests.…` from the root of the checkout, so that they can share what they need.

This one file makes `tests` ours even where some installed package brings a `tests` of its own; the folders below
need no such file.
"""
