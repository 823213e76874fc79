"""Rate-limited warnings about peer connections.

A peer of the wrong cluster reconnects every second, and anyone who finds the port can send anything. So the same
warning is not logged again for `REPEATED_AFTER_S`, and at most `KEPT_MAX` different ones are logged in that time.
"""

import logging
from typing import Final

from tailrace.ports import Clock

logger: Final = logging.getLogger(__name__)

REPEATED_AFTER_S: Final = 600.0
KEPT_MAX: Final = 100
TEXT_MAX_CHARS: Final = 500  # of text that a peer may have chosen


class Complaints:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[tuple[str, str], float] = {}  # by host and reason, oldest first

    def log_closing(self, host: str, port: object, why: str) -> None:
        """Log why a connection with `host` is closed. The port differs at each try, so it is not compared."""
        now = self._clock.monotonic()
        while self._logged_at and now - next(iter(self._logged_at.values())) > REPEATED_AFTER_S:
            del self._logged_at[next(iter(self._logged_at))]
        if (host, why) in self._logged_at or len(self._logged_at) >= KEPT_MAX:
            return
        self._logged_at[host, why] = now
        text = why[:TEXT_MAX_CHARS].encode("unicode_escape").decode()  # it may contain what the peer sent
        logger.warning("closing the peer connection with %s:%s: %s", host, port, text)
