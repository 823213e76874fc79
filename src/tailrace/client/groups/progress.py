"""How far a group's consumer has come in each partition: what it returned, what counts as processed, what is committed.

What one poll returned counts as processed when the application comes back, with the next poll or to commit. Only that
is committed, so a record is processed at least once whenever the application or its machine dies.
"""

from collections.abc import Iterable, Mapping

from tailrace.model.ids import PartitionName

Offsets = Mapping[PartitionName, int]


class Progress:
    def __init__(self) -> None:
        self._returned: dict[PartitionName, int] = {}  # the next offset after what polls returned
        self._processed: dict[PartitionName, int] = {}
        self._committed: dict[PartitionName, int] = {}
        self._lost: dict[PartitionName, None] = {}  # before what was returned could be committed
        self._reported: dict[PartitionName, None] = {}  # the application knows that it could not commit these

    def begin(self, starts: Offsets, committed: Offsets) -> None:
        """Partitions were assigned, to be read from `starts`; a start that is not `committed` will be."""
        self._returned |= starts
        self._processed |= starts
        self._committed |= committed
        for one in starts:
            self._reported.pop(one, None)

    def returned(self, positions: Offsets) -> None:
        """A poll ends, with these positions."""
        self._returned |= {one: offset for one, offset in positions.items() if one in self._returned}

    def came_back(self) -> None:
        """The application calls again: it has processed what it got."""
        self._processed |= self._returned

    def to_commit(self) -> dict[PartitionName, int]:
        return {one: offset for one, offset in self._processed.items() if self._committed.get(one) != offset}

    def owns(self, partition: PartitionName) -> bool:
        return partition in self._processed

    def committed(self, offsets: Offsets) -> None:
        self._committed |= {one: offset for one, offset in offsets.items() if one in self._processed}

    def release(self, partitions: Iterable[PartitionName]) -> None:
        for one in partitions:
            for offsets in (self._returned, self._processed, self._committed):
                offsets.pop(one, None)

    def lose(self, partitions: Iterable[PartitionName]) -> None:
        """Another member may own these by now, and processes again what was returned and not committed."""
        for one in partitions:
            if one in self._returned and self._returned[one] != self._committed.get(one) and one not in self._reported:
                self._lost[one] = None
        self.release(partitions)

    def reported_lost(self, partitions: Iterable[PartitionName]) -> None:
        """The application got an error about these lost partitions, before the membership knows of the loss."""
        self._reported |= dict.fromkeys(partitions)

    def take_lost(self) -> list[PartitionName]:
        """The partitions that were lost with records that were returned and not committed; each is reported once."""
        lost, self._lost = sorted(self._lost), {}
        return lost
