"""How long a client lets us try: the `timeout_ms` of admin requests, within bounds."""

from typing import Any, Final

USUAL_S: Final = 10.0
MIN_S: Final = 1.0  # for a client that would not wait at all, too: what it asks has to get to the controller
MAX_S: Final = 30.0


def request_timeout_s(request: Any) -> float:
    """Not every request says it."""
    timeout_ms: int | None = getattr(request, "timeout_ms", None)
    return USUAL_S if timeout_ms is None else min(max(timeout_ms / 1000, MIN_S), MAX_S)
