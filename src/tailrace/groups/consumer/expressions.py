"""Regular expressions of subscriptions, with the syntax and the promise of RE2: time in proportion to what is read.

Python's own `re` goes back and tries again, for ages if an expression wants it so, and whoever subscribes would hold up
everybody; see ADR 0009. The library is imported when the first expression comes.
"""

from collections.abc import Iterable
from typing import Any

from tailrace.model.faults import InvalidExpression
from tailrace.model.limits import group_expression_max_chars


def compiled(expression: str) -> Any:
    """`InvalidExpression` when it is none."""
    try:
        import re2
    except ImportError as error:  # an installation that is not whole: a client must not be able to crash it
        raise InvalidExpression(f"this broker cannot read expressions: {error}; install google-re2") from None
    if len(expression) > group_expression_max_chars:
        size = len(expression)
        raise InvalidExpression(f"an expression of {size} characters, of {group_expression_max_chars} that are allowed")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        raise InvalidExpression(f"{expression!r} is no regular expression of RE2: {error}") from None


def matching(expression: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that it matches as a whole."""
    found = compiled(expression).fullmatch
    return tuple(sorted(name for name in names if found(name)))
