"""Failures of commands: reported as a sentence on standard error, never as a traceback."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Failed(Exception):
    """The command failed (exit code 1); the message says what happened, to which value, and what to do."""


class NotFound(Failed):
    """One of the named things does not exist; the command still shows the others."""


class Misused(Exception):
    """An argument, option or setting is invalid (exit code 2)."""


def find_all(names: Sequence[str], find: Callable[[str], T]) -> tuple[list[T], NotFound | None]:
    """The things that exist, and a failure that names those that do not, for the command to raise at its end."""
    found, missing = [], []
    for name in names:
        try:
            found.append(find(name))
        except NotFound as failure:
            missing.append(str(failure))
    return found, NotFound("\n".join(missing)) if missing else None


def report(error: Failed | Misused) -> int:
    """Print the error and return the exit code."""
    print(f"tailrace: {error}", file=sys.stderr)
    return 1 if isinstance(error, Failed) else 2
