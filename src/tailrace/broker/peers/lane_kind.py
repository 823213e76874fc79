"""The lanes between two brokers, one connection each: a Fetch that waits at the leader must not delay a vote."""

from enum import IntEnum


class LaneKind(IntEnum):
    CONTROL = 0  # Raft messages and calls
    FETCH = 1
    CATCH_UP = 2  # Fetch of replicas that are far behind

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")
