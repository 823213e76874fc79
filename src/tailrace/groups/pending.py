"""Offsets committed in a transaction that has not ended: they count once it is committed, and not if it is aborted.

Of two commits for one partition, the one written later in the log wins, whichever transaction ends first.
"""

from collections.abc import Iterator

from tailrace.groups.offsets import Committed
from tailrace.model.ids import PartitionName


class PendingOffsets:
    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[PartitionName, Committed]]] = {}  # by producer id, then by group
        self._by_group: dict[str, dict[int, dict[PartitionName, Committed]]] = {}  # the same, by group first
        self._epochs: dict[int, int] = {}  # of those producers

    def add(self, producer_id: int, epoch: int, group_id: str, place: PartitionName, committed: Committed) -> None:
        places = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        places[place] = committed
        self._by_group.setdefault(group_id, {})[producer_id] = places
        self._epochs[producer_id] = epoch

    def end(self, producer_id: int) -> Iterator[tuple[str, PartitionName, Committed]]:
        """Remove and return a producer's pending offsets."""
        self._epochs.pop(producer_id, None)
        for group_id, places in self._by_producer.pop(producer_id, {}).items():
            del self._by_group[group_id][producer_id]
            if not self._by_group[group_id]:
                del self._by_group[group_id]
            for place, committed in places.items():
                yield group_id, place, committed

    def drop(self, group_id: str, place: PartitionName) -> None:
        """Discard a partition's pending offsets. Their transactions stay open, so the producers' epochs stay known."""
        for places in self._by_group.get(group_id, {}).values():
            places.pop(place, None)

    def epoch_of(self, producer_id: int) -> int | None:
        """The epoch of a producer whose transaction has committed offsets here."""
        return self._epochs.get(producer_id)

    @property
    def is_empty(self) -> bool:
        return not self._by_producer

    def places(self, group_id: str) -> dict[PartitionName, None]:
        """The partitions for which a group has pending offsets."""
        return {place: None for places in self._by_group.get(group_id, {}).values() for place in places}
