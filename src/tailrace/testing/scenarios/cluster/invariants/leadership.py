"""Invariants of leaders, epochs and high watermarks, checked with each observation of a replica.

The leader of every epoch is kept for the whole run, so two leaders of one epoch are found even if they never led at
the same time.
"""

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation


class Leaders:
    """One leader per epoch, in the state of the replicas and in the Metadata responses that clients got."""

    def __init__(self) -> None:
        self._by_epoch: dict[tuple[TopicPartition, int], BrokerId] = {}
        self._newest: dict[TopicPartition, int] = {}  # the highest epoch that had a leader
        self.changes = 0

    def check(self, seen: ReplicaObservation) -> bool:
        """Returns whether the replica is a new leader: the first one observed in an epoch above all earlier ones."""
        if not seen.leads:
            return False
        newest = self._newest.get(seen.key, -1)
        self.check_leader(seen.key, seen.epoch, seen.voter.broker, str(seen))
        if seen.epoch <= newest:
            return False
        self._newest[seen.key] = seen.epoch
        self.changes += newest >= 0
        return True

    def check_leader(self, key: TopicPartition, epoch: int, broker: BrokerId, source: str) -> None:
        known = self._by_epoch.setdefault((key, epoch), broker)
        if known != broker:
            raise InvariantViolated(
                Invariant.ONE_LEADER, f"{key} in epoch {epoch}: broker {known}, and broker {broker}: {source}"
            )


class ReplicaProgress:
    """While a replica's log stays open, its epoch and high watermark never go back, and no committed entry is cut off.

    Within its term a leader moves the high watermark only to entries of its own epoch (Raft §5.4.2).
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, TopicPartition], ReplicaObservation] = {}

    def check(self, seen: ReplicaObservation) -> None:
        before = self._last.get((seen.server, seen.key))
        self._last[seen.server, seen.key] = seen
        if seen.end < seen.high_watermark:
            raise InvariantViolated(Invariant.PREFIX, f"the log ends below its high watermark: {seen}")
        if before is None or before.opening != seen.opening:
            return
        if seen.high_watermark < before.high_watermark or seen.epoch < before.epoch:
            raise InvariantViolated(Invariant.RISING, f"{seen} was before {before}")
        same_term = before.leads and seen.leads and before.epoch == seen.epoch
        if same_term and seen.high_watermark > before.high_watermark and seen.committed_epoch != seen.epoch:
            raise InvariantViolated(
                Invariant.OWN_EPOCH, f"the last committed entry is of epoch {seen.committed_epoch}: {seen}"
            )


def check_undamaged(seen: ReplicaObservation) -> None:
    """A replica that detected damage in its log does not lead, unless it is the only voter.

    A sole voter leads to serve what is below the damage.
    """
    if seen.leads and seen.damaged and seen.voters != (seen.voter,):
        raise InvariantViolated(Invariant.DAMAGED, f"{seen}")
