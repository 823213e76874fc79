"""Leaders, epochs and high watermarks: what one look at one replica can prove wrong.

Leaders are remembered by epoch for ever, so two of one epoch are found even when they never led at the same time.
"""

from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation


class Leaders:
    """One leader per epoch, whoever says so: replicas themselves, or Metadata."""

    def __init__(self) -> None:
        self._by_epoch: dict[tuple[TopicPartition, int], BrokerId] = {}
        self._newest: dict[TopicPartition, int] = {}  # the highest epoch that had a leader
        self.changes = 0

    def seen(self, seen: ReplicaObservation) -> bool:
        """Whether this is news: the first sight of a leader in an epoch above all others."""
        if not seen.leads:
            return False
        newest = self._newest.get(seen.key, -1)
        self.told(seen.key, seen.epoch, seen.voter.broker, str(seen))
        if seen.epoch <= newest:
            return False
        self._newest[seen.key] = seen.epoch
        self.changes += newest >= 0
        return True

    def told(self, key: TopicPartition, epoch: int, broker: BrokerId, by: str) -> None:
        known = self._by_epoch.setdefault((key, epoch), broker)
        if known != broker:
            raise InvariantViolated(
                Invariant.ONE_LEADER, f"{key} in epoch {epoch}: broker {known}, and broker {broker}: {by}"
            )


class ReplicaProgress:
    """Within one life of a replica nothing falls, and nothing committed is cut away."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, TopicPartition], ReplicaObservation] = {}

    def seen(self, seen: ReplicaObservation) -> None:
        before = self._last.get((seen.server, seen.key))
        self._last[seen.server, seen.key] = seen
        if seen.end < seen.high_watermark:
            raise InvariantViolated(Invariant.PREFIX, f"the log ends below its high watermark: {seen}")
        if before is None or before.life != seen.life:
            return
        if seen.high_watermark < before.high_watermark or seen.epoch < before.epoch:
            raise InvariantViolated(Invariant.RISING, f"{seen} was {before}")
        led_on = before.leads and seen.leads and before.epoch == seen.epoch
        if led_on and seen.high_watermark > before.high_watermark and seen.committed_epoch != seen.epoch:
            raise InvariantViolated(Invariant.OWN_EPOCH, f"{seen}, whose last entry is of epoch {seen.committed_epoch}")


def check_undamaged(seen: ReplicaObservation) -> None:
    """A replica that knows of bad bytes in its log does not lead; alone it may, to serve what lies below them."""
    if seen.leads and seen.damaged and seen.voters != (seen.voter,):
        raise InvariantViolated(Invariant.DAMAGED, f"{seen}")
