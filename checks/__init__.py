"""The rules of `make check` that ruff, mypy and import-linter do not have.

Each rule is a function from files to findings, with a test in tests/tidy/ that plants a violation and asserts that it
is found. `python -m checks` runs the whole gate; `python -m checks.rules` only the project's own rules.
"""
