"""The lanes between two brokers, a connection each: answers keep their order, and a parked Fetch must delay no vote."""

from enum import IntEnum


class LaneKind(IntEnum):
    CONTROL = 0  # Raft's messages, and calls
    FETCH = 1
    CATCH_UP = 2  # Fetch for replicas that are far behind

    def __str__(self) -> str:
        return self.name.lower().replace("_", "-")
