"""Share groups (KIP-932): their members, and the offsets from which they read.

The coordinator of a group is the broker that leads its partition of `__consumer_offsets`; on other brokers a call
raises `NotCoordinator`. Below the level of metadata.version that allows share groups, every call raises
`UnsupportedVersion`. Share groups are listed and deleted with those of other kinds, by `Groups`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.queues.leader_calls import LeaderCalls
from tailrace.broker.queues.state_calls import ShareStates
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer.requests import HeartbeatAnswer
from tailrace.groups.groups import Groups as GroupMachine
from tailrace.groups.share.member import ShareMember
from tailrace.groups.share.requests import ShareHeartbeat
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault, InvalidGroupId, InvalidRequest, UnknownTopic
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.queues.state import ShareKey

ASSIGNOR: Final = "simple"
UNKNOWN: Final = -1


@frozen
class ShareGroupView:
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ShareMember, ...]


class ShareOffset(NamedTuple):
    """Where a share group is in a partition. -1: unknown, or the group has no state of the partition."""

    start: int = UNKNOWN  # everything before is finished
    lag: int = UNKNOWN  # records that are not finished


class ShareGroups:
    def __init__(
        self,
        coordinator: GroupCoordinator,
        shares: ShareCoordinator,
        states: ShareStates,
        leaders: LeaderCalls,
        hosted: HostedPartitions,
    ) -> None:
        self._coordinator = coordinator
        self._shares = shares
        self._states = states
        self._leaders = leaders
        self._hosted = hosted

    async def heartbeat(self, who: Caller, group_id: str, beat: ShareHeartbeat) -> HeartbeatAnswer:
        return await self._named(group_id).act(lambda machine, turn: machine.share_heartbeat(group_id, beat, turn))

    async def describe(self, who: Caller, group_id: str) -> ShareGroupView:
        return await self._named(group_id).ask(partial(_view, group_id))

    # Offsets

    async def offsets(
        self, who: Caller, group_id: str, wanted: Sequence[PartitionName] | None
    ) -> Mapping[PartitionName, ShareOffset | Fault]:
        """The offsets of these partitions, or of all that the group has state of (None)."""
        known = await self._named(group_id).ask(lambda machine: machine.find_share_group(group_id).partitions.readable)
        places = self._named_places(known) if wanted is None else self._places(wanted)
        existing = [one for one in places.values() if not isinstance(one, Fault) and one in known]
        ends = await self._leaders.log_ends(existing)
        offsets = await asyncio.gather(*(self._offset(group_id, one, ends.get(one)) for one in existing))
        found = dict(zip(existing, offsets, strict=True))
        return {
            name: place if isinstance(place, Fault) else found.get(place, ShareOffset())
            for name, place in places.items()
        }

    async def _offset(self, group_id: str, place: TopicPartition, end: int | None) -> ShareOffset | Fault:
        try:
            state = await self._states.summary(ShareKey(group_id, *place))
        except Fault as fault:
            return fault.with_traceback(None)
        if state is None:
            return ShareOffset()
        return ShareOffset(state.start, UNKNOWN if end is None else max(0, end - state.start - state.complete_count))

    async def alter_offsets(
        self, who: Caller, group_id: str, wanted: Mapping[PartitionName, int]
    ) -> Mapping[PartitionName, Fault | None]:
        """Let a group without members start at other offsets; for each partition its fault, or None."""
        coordinator = self._named(group_id)
        places = self._places(wanted)
        for name, offset in wanted.items():
            if offset < 0:
                places[name] = InvalidRequest(f"start offset {offset} of {name} is negative")
        starts = {place: wanted[name] for name, place in places.items() if not isinstance(place, Fault)}
        names = {place.topic_id: name.topic for name, place in places.items() if not isinstance(place, Fault)}
        await coordinator.act(lambda machine, turn: machine.alter_share_offsets(group_id, starts, names, turn))
        faults = await coordinator.share_state_settled(group_id, list(starts)) if starts else {}
        return {name: place if isinstance(place, Fault) else faults.get(place) for name, place in places.items()}

    async def delete_offsets(self, who: Caller, group_id: str, topics: Sequence[str]) -> Mapping[str, Fault | None]:
        """Delete the state that a group without members has of topics; for each topic its fault, or None."""
        coordinator, image = self._named(group_id), self._hosted.image
        ids = {name: image.topics[name].id for name in topics if name in image.topics}
        partitions = await coordinator.act(
            lambda machine, turn: machine.delete_share_state(group_id, list(ids.values()), turn)
        )
        faults = await coordinator.share_state_settled(group_id, partitions) if partitions else {}
        failed = {one.topic_id: fault for one, fault in faults.items()}
        return {
            name: failed.get(ids[name]) if name in ids else UnknownTopic(f"there is no topic {name}") for name in topics
        }

    # Inside

    def _named(self, group_id: str) -> GroupPartitionCoordinator:
        self._shares.require_level()
        if not group_id:
            raise InvalidGroupId("GroupId can't be empty.")
        return self._coordinator.local(group_id)

    def _places(
        self, names: Sequence[PartitionName] | Mapping[PartitionName, int]
    ) -> dict[PartitionName, TopicPartition | Fault]:
        return {name: self._place(name) for name in names}

    def _place(self, name: PartitionName) -> TopicPartition | Fault:
        topic = self._hosted.image.topics.get(name.topic)
        if topic is None or not 0 <= name.partition < len(topic.partitions):
            return UnknownTopic(f"there is no partition {name}")
        return TopicPartition(topic.id, name.partition)

    def _named_places(self, partitions: PartitionSet) -> dict[PartitionName, TopicPartition | Fault]:
        """Without those of topics that were deleted."""
        topics = self._hosted.image.topics_by_id
        return {
            PartitionName(topics[one.topic_id].name, one.partition): one for one in partitions if one.topic_id in topics
        }


def _view(group_id: str, machine: GroupMachine) -> ShareGroupView:
    group = machine.find_share_group(group_id)
    return ShareGroupView(
        state=group.state.value,
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=ASSIGNOR,
        members=tuple(group.members.values()),
    )
