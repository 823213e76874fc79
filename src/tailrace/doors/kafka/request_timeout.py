"""The timeout of a request: its `timeout_ms`, within bounds."""

from typing import Any, Final

DEFAULT_S: Final = 10.0
MIN_S: Final = 1.0  # even for `timeout_ms` 0: the request has to reach the controller
MAX_S: Final = 30.0


def request_timeout_s(request: Any) -> float:
    """Requests without the field get the default."""
    timeout_ms: int | None = getattr(request, "timeout_ms", None)
    return DEFAULT_S if timeout_ms is None else min(max(timeout_ms / 1000, MIN_S), MAX_S)
