"""What `__consumer_offsets` says: groups of both kinds, how far they have read, and what transactions have not settled.

Only `replay` changes it, live and at start-up alike; `Groups` is asked, and decides.
"""

from collections.abc import Iterable, Mapping

from tailrace.groups import offsets
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.records import ConsumerGroupMetadataKey
from tailrace.groups.group import ClassicGroup
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.offsets import Committed
from tailrace.groups.pending import PendingOffsets
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded


class KeptGroups:
    def __init__(self) -> None:
        self.groups: dict[str, AnyGroup] = {}
        self.offsets: dict[str, dict[PartitionName, Committed]] = {}  # by group, of which there always is one
        self.pending = PendingOffsets()
        self._order = 0  # of the offset written last
        self._gone: dict[str, int] = {}  # topics that were deleted, and the order of the last offset that can be theirs
        self._serves = False

    def replay(self, entry: Entry | InTransaction | TransactionEnded) -> None:
        match entry:
            case Entry(OffsetCommitKey() as key, OffsetCommitValue() as value):
                self._keep(
                    key.group, PartitionName(key.topic, key.partition), offsets.committed_of(value, self._next_order())
                )
            case InTransaction(producer_id, epoch, Entry(OffsetCommitKey() as key, OffsetCommitValue() as value)):
                self._group(key.group)
                committed = offsets.committed_of(value, self._next_order())
                self.pending.add(producer_id, epoch, key.group, PartitionName(key.topic, key.partition), committed)
            case TransactionEnded(producer_id, committed=is_committed):
                self._end(producer_id, is_committed)
            case Entry(OffsetCommitKey() as key, None):
                place = PartitionName(key.topic, key.partition)
                self.offsets.get(key.group, {}).pop(place, None)
                self.pending.drop(key.group, place)
            case Entry(GroupMetadataKey() as key, GroupMetadataValue() as value):
                group = self._classic(key.group)
                if self._serves:
                    group.replay(value)
                else:
                    group.restore(value)
            case Entry(GroupMetadataKey() as key, None):
                self._remove(key.group, ClassicGroup)
            case Entry(ConsumerGroupMetadataKey() as key, None):
                self._remove(key.group, ConsumerGroup)
            case Entry():
                self._replay_of_consumers(entry)

    def committed(self, group_id: str) -> Mapping[PartitionName, Committed]:
        return self.offsets.get(group_id, {})

    def topics_gone(self, names: Iterable[str]) -> None:
        """Topics are deleted by now: what was committed so far is none of others that are made under their names."""
        self._gone.update(dict.fromkeys(names, self._order))

    def take_over_from(self, other: "KeptGroups") -> None:
        """This one was built from the same log: of topics that are gone it knows what the other did."""
        self._gone = {name: self._order - (other._order - order) for name, order in other._gone.items()}

    def is_gone(self, place: PartitionName, committed: Committed) -> bool:
        return committed.order <= self._gone.get(place.topic, -1)

    def _keep(self, group_id: str, place: PartitionName, committed: Committed) -> None:
        self._group(group_id)
        self.offsets.setdefault(group_id, {})[place] = committed

    def _next_order(self) -> int:
        self._order += 1
        return self._order

    def _end(self, producer_id: int, is_committed: bool) -> None:
        for group_id, place, committed in self.pending.end(producer_id):
            known = self.committed(group_id).get(place)
            if is_committed and (known is None or known.order < committed.order):
                self._keep(group_id, place, committed)

    def _replay_of_consumers(self, entry: Entry) -> None:
        """A record of a consumer group makes it one; what is taken back of another kind of group is gone already."""
        assert not isinstance(entry.key, OffsetCommitKey)
        group = self.groups.get(entry.key.group)
        if not isinstance(group, ConsumerGroup):
            if entry.value is None:
                return
            group = self.groups[entry.key.group] = ConsumerGroup(entry.key.group)
        group.replay(entry)

    def _group(self, group_id: str) -> AnyGroup:
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)
        return self.groups[group_id]

    def _classic(self, group_id: str) -> ClassicGroup:
        group = self._group(group_id)
        if not isinstance(group, ClassicGroup):
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _remove(self, group_id: str, kind: type[AnyGroup]) -> None:
        """A group of one kind is gone; one of the other kind may have taken its place, and its offsets."""
        if isinstance(self.groups.get(group_id), kind):
            del self.groups[group_id]
        if not self.offsets.get(group_id):
            self.offsets.pop(group_id, None)
