"""What a consumer found that read a compacted partition from its start, compared with the committed records.

For each key it must find the last committed value. For a key that was deleted it must find none, or have seen the
tombstone. A replica removes a tombstone `delete.retention.ms` after its own log has lost what the tombstone deletes. So
a consumer may end with an old value, which was committed, in two cases:

- from asking for the value to the answer with the offset of the tombstone it took longer than that;
- these two came from two logs. Replicas compact on their own: one may have the value, and the tombstone, when another
  has removed both long ago. A replica that has begun anew meanwhile has the log of its leader.
"""

from typing import Final, NamedTuple

from tailrace.testing.scenarios.cluster.invariants.compacted_history import NOTHING, CompactedHistory, Replica, Table
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated

ABSENT: Final = (NOTHING, None)


class Moment(NamedTuple):
    log: tuple[Replica, int]  # the replica, and how often it had begun anew
    at: float  # in seconds, on the consumer's monotonic clock


class Answer(NamedTuple):
    """An answer to a fetch, and between which moments its records were read."""

    offsets: range
    asked: Moment
    answered: Moment


class TableRead:
    def __init__(self, consumer: str) -> None:
        self._consumer = consumer
        self.table = Table()
        self.answers: list[Answer] = []

    def check(self, history: CompactedHistory, tombstones_kept_ms: int) -> None:
        committed = history.table()
        for key in {**committed, **self.table}:
            last, found = committed.get(key, ABSENT), self.table.get(key, ABSENT)
            if found == last or (found[1] is None and last[1] is None):
                continue
            is_old = last[1] is None and found[0] < last[0] and history.has_committed(found[0], key, found[1])
            if not is_old or not self._may_miss(last[0], found[0], tombstones_kept_ms):
                raise InvariantViolated(
                    Invariant.LAST_VALUE, f"{self._consumer} read {key!r} as {found}, committed is {last}"
                )

    def _may_miss(self, tombstone: int, value: int, tombstones_kept_ms: int) -> bool:
        """Whether the tombstone may be gone, of the two offsets, although the value was read."""
        asked = [one.asked for one in self.answers if value in one.offsets]
        answered = [one.answered for one in self.answers if tombstone in one.offsets]
        return any(
            first.log != last.log or 1000 * (last.at - first.at) > tombstones_kept_ms
            for first in asked
            for last in answered
        )
