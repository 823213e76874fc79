"""How a command fails: with a sentence, never with a traceback."""

import sys


class Failed(Exception):
    """The operation did not work; the message says what happened, which value was wrong, and what to do."""


class Misused(Exception):
    """The command line or a setting makes no sense."""


def report(error: Failed | Misused) -> int:
    """Tell the person; the exit code that scripts see."""
    print(f"tailrace: {error}", file=sys.stderr)
    return 1 if isinstance(error, Failed) else 2
