"""The state that replaying `__consumer_offsets` yields: groups of all kinds, committed offsets, pending offsets.

Only `replay` changes it, when the log is loaded and when the coordinator is active. `Groups` adds the handling of
requests.
"""

from collections.abc import Iterable, Mapping

from tailrace.groups import offsets
from tailrace.groups.any_group import AnyGroup
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.records import ConsumerGroupMetadataKey
from tailrace.groups.offsets import Committed
from tailrace.groups.pending import PendingOffsets
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.records import ShareGroupMetadataKey, ShareKey
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded


class ReplayedGroups:
    def __init__(self) -> None:
        self.groups: dict[str, AnyGroup] = {}
        self.offsets: dict[str, dict[PartitionName, Committed]] = {}  # by group id; each of these groups is in `groups`
        self.pending = PendingOffsets()
        self._order = 0  # `Committed.order` of the last commit replayed
        self._deleted_topics: dict[str, int] = {}  # the highest `Committed.order` that belongs to the deleted topic
        self._is_active = False  # the log is loaded and requests are served

    def replay(self, entry: Entry | InTransaction | TransactionEnded) -> None:
        match entry:
            case Entry(OffsetCommitKey() as key, OffsetCommitValue() as value):
                self._commit(
                    key.group, PartitionName(key.topic, key.partition), offsets.committed_of(value, self._next_order())
                )
            case InTransaction(producer_id, epoch, Entry(OffsetCommitKey() as key, OffsetCommitValue() as value)):
                self._group(key.group)
                committed = offsets.committed_of(value, self._next_order())
                self.pending.add(producer_id, epoch, key.group, PartitionName(key.topic, key.partition), committed)
            case TransactionEnded(producer_id, committed=is_committed):
                self._end_transaction(producer_id, is_committed)
            case Entry(OffsetCommitKey() as key, None):
                place = PartitionName(key.topic, key.partition)
                self.offsets.get(key.group, {}).pop(place, None)
                self.pending.drop(key.group, place)
            case Entry(GroupMetadataKey() as key, GroupMetadataValue() as value):
                group = self._classic_group(key.group)
                if self._is_active:
                    group.replay(value)
                else:
                    group.restore(value)
            case Entry(GroupMetadataKey() as key, None):
                self._remove(key.group, ClassicGroup)
            case Entry(ConsumerGroupMetadataKey() as key, None):
                self._remove(key.group, ConsumerGroup)
            case Entry(ShareGroupMetadataKey() as key, None):
                self._remove(key.group, ShareGroup)
            case Entry():
                self._replay_member_record(entry)

    def committed(self, group_id: str) -> Mapping[PartitionName, Committed]:
        return self.offsets.get(group_id, {})

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Mark the offsets committed so far for these topics as void, even if topics of the same names are created."""
        self._deleted_topics.update(dict.fromkeys(names, self._order))

    def inherit_deleted_topics(self, other: "ReplayedGroups") -> None:
        """Copy what `topics_deleted` recorded in a machine that was built from the same log.

        This machine may have replayed fewer records, since the log's start may have moved; `_order` is aligned at the
        end of the log."""
        self._deleted_topics = {
            name: self._order - (other._order - order) for name, order in other._deleted_topics.items()
        }

    def is_of_deleted_topic(self, place: PartitionName, committed: Committed) -> bool:
        return committed.order <= self._deleted_topics.get(place.topic, -1)

    def _commit(self, group_id: str, place: PartitionName, committed: Committed) -> None:
        self._group(group_id)
        self.offsets.setdefault(group_id, {})[place] = committed

    def _next_order(self) -> int:
        self._order += 1
        return self._order

    def _end_transaction(self, producer_id: int, is_committed: bool) -> None:
        for group_id, place, committed in self.pending.end(producer_id):
            known = self.committed(group_id).get(place)
            if is_committed and (known is None or known.order < committed.order):
                self._commit(group_id, place, committed)

    def _replay_member_record(self, entry: Entry) -> None:
        """A record of a consumer or share group turns the group into one; tombstones for a group of another kind have
        no effect, because its records of this kind are already gone."""
        assert not isinstance(entry.key, OffsetCommitKey)
        kind = ShareGroup if isinstance(entry.key, ShareKey) else ConsumerGroup
        group = self.groups.get(entry.key.group)
        if not isinstance(group, kind):
            if entry.value is None:
                return
            group = self.groups[entry.key.group] = kind(entry.key.group)
        assert not isinstance(group, ClassicGroup)
        group.replay(entry)

    def _group(self, group_id: str) -> AnyGroup:
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id)
        return self.groups[group_id]

    def _classic_group(self, group_id: str) -> ClassicGroup:
        group = self._group(group_id)
        if not isinstance(group, ClassicGroup):
            group = self.groups[group_id] = ClassicGroup(group_id)
        return group

    def _remove(self, group_id: str, kind: type[AnyGroup]) -> None:
        """Remove a group of one kind. A group of another kind may have replaced it, and keeps its offsets."""
        if isinstance(self.groups.get(group_id), kind):
            del self.groups[group_id]
        if not self.offsets.get(group_id):
            self.offsets.pop(group_id, None)
