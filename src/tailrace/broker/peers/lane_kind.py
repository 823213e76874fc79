"""The lanes between two brokers, one connection each: a Fetch that waits at the leader must not delay a vote."""

from enum import IntEnum
from typing import Final


class LaneKind(IntEnum):
    CONTROL = 0  # Raft messages and calls
    FETCH = 1
    CATCH_UP = 2  # Fetch of replicas that are far behind
    CLIENT = 3  # requests of a door's client, one connection each: after the hello it carries Kafka's protocol

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")


KEPT_LANES: Final = (LaneKind.CONTROL, LaneKind.FETCH, LaneKind.CATCH_UP)  # at most one of each between two brokers
