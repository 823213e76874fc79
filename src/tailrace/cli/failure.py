"""Failures of commands: reported as a sentence on standard error, never as a traceback."""

import sys


class Failed(Exception):
    """The command failed (exit code 1); the message says what happened, to which value, and what to do."""


class NotFound(Failed):
    """One of the named things does not exist; the command still shows the others."""


class Misused(Exception):
    """An argument, option or setting is invalid (exit code 2)."""


def report(error: Failed | Misused) -> int:
    """Print the error and return the exit code."""
    print(f"tailrace: {error}", file=sys.stderr)
    return 1 if isinstance(error, Failed) else 2
