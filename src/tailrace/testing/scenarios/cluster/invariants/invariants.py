"""The names of the invariants. A failure prints the name of the violated invariant, then what was observed."""

from enum import StrEnum


class Invariant(StrEnum):
    ONE_LEADER = "one leader per epoch"
    PREFIX = "committed prefix never truncated"
    SAME_BYTES = "below the high watermark the same bytes at the same offset on every replica"
    NOTHING_LOST = "no acknowledged write lost"
    ONE_VALUE = "one value per offset"
    NO_DUPLICATES = "no duplicates under idempotence"
    OWN_EPOCH = "a leader commits by counting replicas only entries of its own epoch"
    RISING = "monotonic high watermark and epochs"
    DAMAGED = "a damaged replica never leads with a damaged prefix"
    SCRUBBED = "damage that nobody reads is found, and repaired while the broker runs"
    LATE_VOTE = "a late vote never reaches a recreated topic"
    STORED = "epoch and vote are on disk before any message carries them"
    ONE_VOTE = "one vote per epoch"
    CONTROLLER = "a controller without a quorum answers no request"
    ALIVE = "no broker gives up by itself"
    ONE_OWNER = "each partition has one owner per generation"
    OFFSETS = "committed offsets never go back"
    TRANSACTIONS = "all of a committed transaction is read, once, and nothing of an aborted one"
    FENCED = "a fenced producer writes nothing"
    ONE_STATE = "each offset of a share partition is in exactly one state"
    ONE_HOLDER = "a record has one holder at a time, in one tenure of a share partition"
    FINISHED_ONCE = "a record that was accepted or rejected is not delivered again"
    DELIVERY_COUNTS = "delivery counts never fall, and stay within the limit"
    RESTS = "a record that backs off is delivered neither early nor late"
    LOCKS = "a lock ends with its time and its session, and there are no more than the limit"
    NO_IDLE_WAIT = "no fetch of a share group waits while something can be acquired"
    SHARE_STATE = "stored share states never go back, and are what a replay of their log gives"
    DEAD_LETTERS = "each record that is given up has a dead letter, and no other record has one"
    DRAINED = "every committed record is accepted, rejected or given up, once members take all"
    LAST_VALUE = "the last committed value of each key is always readable"
    NOT_BACK = "no deleted or aborted record comes back to life"
    HORIZON = "a replica lacks tombstones and transaction markers only below its tombstone horizon"
    COMPACTED = "replicas of a compacted partition agree on surviving records, and have no gaps"
    CONVERGES = "everything converges within 30 virtual seconds after healing"


class InvariantViolated(AssertionError):
    def __init__(self, invariant: Invariant, observed: str) -> None:
        super().__init__(f"{invariant}: {observed}")
        self.invariant = invariant
