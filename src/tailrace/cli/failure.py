"""How a command fails: with a sentence, never with a traceback."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Failed(Exception):
    """The operation did not work; the message says what happened, which value was wrong, and what to do."""


class NotThere(Failed):
    """What was named does not exist. What else was named may."""


class Misused(Exception):
    """The command line or a setting makes no sense."""


def looked_up(names: Sequence[str], look: Callable[[str], T]) -> tuple[list[T], NotThere | None]:
    """What there is of what was named, and the failure to end with when that is not all."""
    found, missing = [], []
    for name in names:
        try:
            found.append(look(name))
        except NotThere as failure:
            missing.append(str(failure))
    return found, NotThere("\n".join(missing)) if missing else None


def report(error: Failed | Misused) -> int:
    """Tell the person; the exit code that scripts see."""
    print(f"tailrace: {error}", file=sys.stderr)
    return 1 if isinstance(error, Failed) else 2
