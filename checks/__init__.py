"""What `make check` holds the tree to, beyond what ruff, mypy and import-linter know.

Each rule is a function from files to findings, and each has a test in tests/tidy/ that plants a violation and
sees it found. `python -m checks` runs the whole gate; `python -m checks.rules` only the rules of our own.
"""
