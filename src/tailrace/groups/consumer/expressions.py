"""Regular expressions of subscriptions, with the syntax and the promise of RE2: time in proportion to what is read.

Python's own `re` goes back and tries again, for ages if an expression wants it so, and whoever subscribes would hold up
everybody; see ADR 0009. The library is imported when the first expression comes.

Proportion to the text is not enough: time is in proportion to the program, too, where an expression is made for it, and
there are many names. So programs are bounded, nothing is captured, and whoever runs the machine tries names before a
turn needs them, a few at a time (`Tried`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.model.faults import InvalidExpression
from tailrace.model.limits import GROUP_EXPRESSION_MAX_BYTES, GROUP_EXPRESSION_MAX_CHARS, GROUP_EXPRESSION_MAX_STEPS

Tried = Mapping[str, Mapping[str, bool]]  # by expression and name: whether it matches that


def compiled(expression: str) -> Any:
    """`InvalidExpression` when it is none, or one that would take long."""
    try:
        import re2
    except ImportError as error:  # an installation that is not whole: a client must not be able to crash it
        raise InvalidExpression(f"this broker cannot read expressions: {error}; install google-re2") from None
    if len(expression) > GROUP_EXPRESSION_MAX_CHARS:
        size = len(expression)
        raise InvalidExpression(
            f"an expression of {size} characters, of {GROUP_EXPRESSION_MAX_CHARS} that are allowed: "
            "shorten it, or name what it stands for"
        )
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # only whether it matches is asked for: where its groups are takes a slower way
    options.max_mem = GROUP_EXPRESSION_MAX_BYTES
    try:
        found = re2.compile(expression, options)
    except re2.error as error:
        raise InvalidExpression(f"{expression!r} is no regular expression of RE2: {error}") from None
    if found.programsize > GROUP_EXPRESSION_MAX_STEPS:
        raise InvalidExpression(
            f"{expression!r} takes {found.programsize} steps, of {GROUP_EXPRESSION_MAX_STEPS} that are allowed: "
            "repeat less in it, or name what it stands for"
        )
    return found


def matching(expression: str, names: Iterable[str], tried: Tried) -> tuple[str, ...]:
    """The names that it matches as a whole; what was not tried is tried now."""
    known = tried.get(expression, {})
    left = [name for name in names if name not in known]
    if left:
        matches = compiled(expression).fullmatch
        known = {**known, **{name: matches(name) is not None for name in left}}
    return tuple(sorted(name for name in names if known[name]))
