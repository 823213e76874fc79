"""Warnings that others can make us repeat: each is said once in a while, and not many of them.

A peer of the wrong cluster tries again every second, and whoever finds the port can send anything. So a warning that
was given is not given again for some minutes, and there are at most so many of them in that time.
"""

import logging
from typing import Final

from tailrace.ports import Clock

logger: Final = logging.getLogger(__name__)

REPEATED_AFTER_S: Final = 600.0
KEPT_MAX: Final = 100
TEXT_MAX_CHARS: Final = 500  # of others' text in our log


class Complaints:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}  # oldest first

    def say(self, host: str, port: object, why: str) -> None:
        """About a connection with `host`; the port is another one at each try."""
        now = self._clock.monotonic()
        while self._said and now - next(iter(self._said.values())) > REPEATED_AFTER_S:
            del self._said[next(iter(self._said))]
        if (host, why) in self._said or len(self._said) >= KEPT_MAX:
            return
        self._said[host, why] = now
        text = why[:TEXT_MAX_CHARS].encode("unicode_escape").decode()  # it may repeat what the other side wrote
        logger.warning("closing the peer connection with %s:%s: %s", host, port, text)
