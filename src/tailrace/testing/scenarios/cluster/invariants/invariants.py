"""What must hold in every history of a cluster, by name. A failure prints the name, then what was seen."""

from enum import StrEnum


class Invariant(StrEnum):
    ONE_LEADER = "one leader per epoch"
    PREFIX = "committed prefix never truncated"
    SAME_BYTES = "below the high watermark the same bytes at the same offset on every replica"
    NOTHING_LOST = "no acknowledged write lost"
    ONE_VALUE = "one value per offset"
    NO_DUPLICATES = "no duplicates under idempotence"
    OWN_EPOCH = "a leader commits by counting only what is of its own epoch"
    RISING = "monotonic high watermark and epochs"
    DAMAGED = "a damaged replica never leads with a damaged prefix"
    LATE_VOTE = "a late vote never touches a recreated topic"
    STORED = "epoch and vote are on disk before anyone hears of them"
    ONE_VOTE = "one vote per epoch"
    CONTROLLER = "a controller without a quorum answers nobody"
    ALIVE = "no broker gives up by itself"
    ONE_OWNER = "each partition has one owner per generation"
    OFFSETS = "committed offsets never go back"
    TRANSACTIONS = "all of a committed transaction is read, once, and nothing of an aborted one"
    FENCED = "a fenced producer writes nothing"
    CONVERGES = "everything converges within 30 virtual seconds after healing"


class InvariantViolated(AssertionError):
    """An invariant does not hold."""

    def __init__(self, invariant: Invariant, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant
