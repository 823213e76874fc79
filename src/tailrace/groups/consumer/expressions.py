"""Regular expressions in subscriptions, with RE2: matching takes time linear in the length of the text.

Python's `re` backtracks, and a hostile expression would block the broker for all clients; see ADR 0009. RE2 is
imported when the first expression arrives.

Time linear in the text is not enough. It is also proportional to the compiled program, which an expression can make
large, and there may be many topics. So the size of programs is bounded, groups are not captured, and the driver
matches names before the turn, in time slices, and passes the results with it (`KnownMatches`).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tailrace.model.faults import InvalidExpression
from tailrace.model.limits import GROUP_EXPRESSION_MAX_BYTES, GROUP_EXPRESSION_MAX_CHARS, GROUP_EXPRESSION_MAX_STEPS

KnownMatches = Mapping[str, Mapping[str, bool]]  # by expression, then by topic name: whether it matches


def compiled(expression: str) -> Any:
    """Raises `InvalidExpression` if it does not compile, or would be too slow."""
    try:
        import re2
    except ImportError as error:  # an incomplete installation: a client must not crash the broker
        raise InvalidExpression(f"This broker has no regular expressions: {error}; install google-re2.") from None
    if len(expression) > GROUP_EXPRESSION_MAX_CHARS:
        raise InvalidExpression(
            f"Regular expression has {len(expression)} characters; {GROUP_EXPRESSION_MAX_CHARS} are allowed."
        )
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # only whether it matches is needed; capturing groups is slower
    options.max_mem = GROUP_EXPRESSION_MAX_BYTES
    try:
        found = re2.compile(expression, options)
    except re2.error as error:
        raise InvalidExpression(f"Invalid RE2 regular expression {expression!r}: {error}.") from None
    if found.programsize > GROUP_EXPRESSION_MAX_STEPS:
        raise InvalidExpression(
            f"Regular expression {expression!r} compiles to {found.programsize} steps; "
            f"{GROUP_EXPRESSION_MAX_STEPS} are allowed: use fewer repetitions."
        )
    return found


def matching(expression: str, names: Iterable[str], known_matches: KnownMatches) -> tuple[str, ...]:
    """The names that it matches as a whole; names without a known result are matched here."""
    known = known_matches.get(expression, {})
    unknown = [name for name in names if name not in known]
    if unknown:
        matches = compiled(expression).fullmatch
        known = {**known, **{name: matches(name) is not None for name in unknown}}
    return tuple(sorted(name for name in names if known[name]))
