"""Consumer groups of both protocols, and their committed offsets; listing and deleting groups of any kind.

The coordinator of a group is the broker that leads its partition of `__consumer_offsets`; on other brokers a call
raises `NotCoordinator`. A call returns, even if it only reads, when the high watermark has passed the state from which
its result was computed.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator, Ticket
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.services.time_slices import TimeSlice
from tailrace.cluster.image import Topic
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.states import State
from tailrace.groups.consumer.expressions import KnownMatches, compiled
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.member import ConsumerMember
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.consumer.requests import Heartbeat, HeartbeatAnswer
from tailrace.groups.groups import Groups as GroupMachine
from tailrace.groups.offsets import Committed, check_metadata
from tailrace.groups.requests import JoinAnswer, JoinRequest, MemberId, SyncAnswer, SyncRequest
from tailrace.groups.turn import GroupTurn
from tailrace.model.caller import Caller
from tailrace.model.faults import Fault, InvalidExpression, InvalidGroupId, UnknownTopic
from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.ports import Ports

HEX_PARTS: Final = (8, 12, 16, 20)  # the positions of the dashes in a UUID
MEMBER_NAME_MAX_CHARS: Final = 4096  # of the client id or instance id at the start of a member id
LAST_MS: Final = 2**63 - 1  # the largest time that can be stored
KEPT_BY_DEFAULT: Final = -1


class OffsetToCommit(NamedTuple):
    topic: Topic | Fault  # a fault: why the topic was not found
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


@frozen
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str
    kind: str  # classic, consumer or share


@frozen
class ClassicMemberView:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@frozen
class ClassicGroupView:
    """A classic group. Protocol, metadata and assignments of members are empty unless the group is stable."""

    state: str
    protocol_type: str
    protocol: str
    members: tuple[ClassicMemberView, ...]


@frozen
class ConsumerMemberView:
    member: ConsumerMember
    assigned: PartitionSet
    target: PartitionSet


@frozen
class ConsumerGroupView:
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[ConsumerMemberView, ...]


class OffsetReader(NamedTuple):
    """The member that fetches committed offsets, and how."""

    member_id: str | None  # None: not as a member
    member_epoch: int
    require_stable: bool  # do not return an offset while an open transaction is about to replace it


CommittedOffsets = Mapping[PartitionName, Committed | None]  # None: unstable, an open transaction has committed another

WhenCommitted = Callable[[list[Fault | None] | Exception], None]  # called with the faults, or with an error of our own


class Groups:
    def __init__(
        self, coordinator: GroupCoordinator, hosted: HostedPartitions, ports: Ports, offset_metadata_max_bytes: int
    ) -> None:
        self._coordinator = coordinator
        self._hosted = hosted
        self._ports = ports
        self._offset_metadata_max_bytes = offset_metadata_max_bytes

    async def find_coordinator(self, who: Caller, group_id: str) -> BrokerId:
        return await self._coordinator.find(group_id)

    # Members of the classic protocol

    async def join(self, who: Caller, group_id: str, wanted: JoinRequest) -> JoinAnswer:
        """Returns when all members have joined, or the rebalance timeout is over."""
        new_id = self.new_member_id(who, wanted.identity.instance_id)
        joined = await self._named(group_id).answered(partial(_join, group_id, wanted, new_id))
        assert isinstance(joined, JoinAnswer)
        return joined

    async def sync(self, who: Caller, group_id: str, wanted: SyncRequest) -> SyncAnswer:
        """Returns when the group leader has sent the assignment of the generation."""
        synced = await self._named(group_id).answered(partial(_sync, group_id, wanted))
        assert isinstance(synced, SyncAnswer)
        return synced

    async def heartbeat(self, who: Caller, group_id: str, member: MemberId, generation: int) -> None:
        await self._named(group_id).act(lambda machine, turn: machine.heartbeat(group_id, member, generation, turn))

    async def leave(self, who: Caller, group_id: str, members: Sequence[MemberId]) -> list[Fault | None]:
        return await self._named(group_id).act(lambda machine, turn: machine.leave(group_id, members, turn))

    # Members of the consumer protocol (KIP-848)

    async def consumer_heartbeat(
        self, who: Caller, group_id: str, beat: Heartbeat, time_slice: TimeSlice
    ) -> HeartbeatAnswer:
        coordinator = self._named(group_id)
        tried = await _try_expressions(group_id, beat.expression, coordinator, time_slice)

        def act(machine: GroupMachine, turn: GroupTurn) -> HeartbeatAnswer:
            turn.known_matches = tried
            return machine.consumer_heartbeat(group_id, beat, turn)

        return await coordinator.act(act)

    def new_member_id(self, who: Caller, instance_id: str | None) -> str:
        """A member id in Kafka's form, `<client id>-<UUID>`: operators recognise clients by it."""
        digits = self._ports.random.new_id().hex()
        cuts = zip((0, *HEX_PARTS), (*HEX_PARTS, len(digits)), strict=True)
        name = (instance_id or who.client_id or "")[:MEMBER_NAME_MAX_CHARS]
        return f"{name}-" + "-".join(digits[begin:end] for begin, end in cuts)

    # Offsets

    def commit_offsets(
        self,
        who: Caller,
        group_id: str,
        member: MemberId,
        generation: int,
        offsets: Sequence[OffsetToCommit],
        done: "WhenCommitted",
        *,
        kept_ms: int = KEPT_BY_DEFAULT,
        knows_epochs: bool,
    ) -> None:
        """Commit all valid offsets in one write, and call `done` with the fault of each offset, or None.

        `knows_epochs`: the client knows that members of the consumer protocol have member epochs, not a generation."""
        faults, committable = self.committable(offsets, kept_ms)
        if not committable:
            done(faults)
            return
        try:
            self._coordinator.local(group_id).act_soon(
                lambda machine, turn: machine.commit(
                    group_id, member, generation, committable, turn, knows_epochs=knows_epochs
                ),
                partial(_committed, faults, done),
            )
        except Fault as fault:
            _committed(faults, done, None, fault)

    def committable(
        self, offsets: Sequence[OffsetToCommit], kept_ms: int = KEPT_BY_DEFAULT
    ) -> tuple[list[Fault | None], Mapping[PartitionName, Committed]]:
        """For each offset the fault that prevents its commit, or None; and the offsets without a fault."""
        now_ms = self._ports.clock.wall_ms()
        expires_ms = kept_ms if kept_ms == KEPT_BY_DEFAULT else min(max(0, now_ms + kept_ms), LAST_MS)
        faults: list[Fault | None] = []
        committable: dict[PartitionName, Committed] = {}
        for topic, partition, offset, leader_epoch, metadata in offsets:
            if isinstance(topic, Fault):
                faults.append(topic)
                continue
            fault = self._refusal(topic, partition, metadata)
            faults.append(fault)
            if fault is None:
                committable[PartitionName(topic.name, partition)] = Committed(
                    offset=offset,
                    leader_epoch=leader_epoch,
                    metadata=metadata,
                    committed_ms=now_ms,
                    expires_ms=expires_ms,
                )
        return faults, committable

    def _refusal(self, topic: Topic, partition: int, metadata: str) -> Fault | None:
        """Why an offset cannot be committed; None: it can."""
        if not 0 <= partition < len(topic.partitions):
            return UnknownTopic(f"there is no partition {topic.name}-{partition}")
        try:
            check_metadata(metadata, self._offset_metadata_max_bytes)
        except Fault as fault:
            return fault.with_traceback(None)
        return None

    async def committed_offsets(self, who: Caller, group_id: str, reader: OffsetReader) -> CommittedOffsets:
        """All committed offsets of a group."""

        def read(machine: GroupMachine) -> CommittedOffsets:
            machine.check_offset_fetch(group_id, reader.member_id, reader.member_epoch)
            unstable = machine.pending.places(group_id) if reader.require_stable else {}
            return {**machine.committed(group_id), **dict.fromkeys(unstable)}

        return await self._coordinator.local(group_id).ask(read)

    async def delete_offsets(self, who: Caller, group_id: str, places: Sequence[PartitionName]) -> list[Fault | None]:
        """Delete committed offsets of topics that the group is not subscribed to; for each its fault, or None."""
        existing = [place for place in places if self._exists(place)]
        results = await self._named(group_id).act(
            lambda machine, turn: machine.delete_offsets(group_id, existing, turn)
        )
        outcome = dict(zip(existing, results, strict=True))
        return [
            outcome[place]
            if place in outcome
            else UnknownTopic(f"there is no partition {place.topic}-{place.partition}")
            for place in places
        ]

    def _exists(self, place: PartitionName) -> bool:
        topic = self._hosted.image.topics.get(place.topic)
        return topic is not None and 0 <= place.partition < len(topic.partitions)

    # Listing, describing and deleting groups

    async def list(self, who: Caller, states: Container[str], kinds: Container[str]) -> list[ListedGroup]:
        """The groups that this broker coordinates, filtered by states and kinds (in lower case); empty: no filter."""
        found: list[ListedGroup] = []
        for coordinator in self._coordinator.local_coordinators:
            found += await coordinator.ask(partial(_listed, states, kinds))
        return found

    async def describe_classic(self, who: Caller, group_id: str) -> ClassicGroupView:
        return await self._coordinator.local(group_id).ask(partial(_classic_view, group_id))

    async def describe_consumer(self, who: Caller, group_id: str) -> ConsumerGroupView:
        coordinator = self._named(group_id)
        return await coordinator.ask(partial(_consumer_view, group_id, coordinator.rules.assignors[0]))

    async def delete(self, who: Caller, group_id: str) -> None:
        """Delete a group that has no members, and its committed offsets or the share state of its partitions."""
        await self._coordinator.local(group_id).delete(group_id)

    def _named(self, group_id: str) -> GroupPartitionCoordinator:
        """The coordinator of a group that may have members. With an empty group id only offsets can be committed."""
        if not group_id:
            raise InvalidGroupId("GroupId can't be empty.")
        return self._coordinator.local(group_id)


async def _try_expressions(
    group_id: str, expression: str | None, coordinator: GroupPartitionCoordinator, time_slice: TimeSlice
) -> KnownMatches:
    """Match regular expressions against topic names in advance, in time slices: the coordinator's own turn must be
    short."""
    tried: dict[str, dict[str, bool]] = {}
    time_slice.begin()
    while left := coordinator.names_to_match(group_id, expression, tried):
        for one, names in left.items():
            results = tried.setdefault(one, {})
            try:
                matches = compiled(one).fullmatch
            except InvalidExpression:  # the coordinator refuses a new one, and keeps the matches of an old one
                results |= dict.fromkeys(names, False)
                continue
            for name in names:
                results[name] = matches(name) is not None
                if time_slice.is_over:
                    await time_slice.next()
    return tried


def _join(
    group_id: str, wanted: JoinRequest, new_id: str, machine: GroupMachine, ticket: Ticket, turn: GroupTurn
) -> None:
    machine.join(group_id, wanted, ticket, new_id, turn)


def _sync(group_id: str, wanted: SyncRequest, machine: GroupMachine, ticket: Ticket, turn: GroupTurn) -> None:
    machine.sync(group_id, wanted, ticket, turn)


def _committed(faults: "list[Fault | None]", done: WhenCommitted, _: object, fault: Exception | None) -> None:
    if fault is None:
        done(faults)
    elif isinstance(fault, Fault):
        done([one or fault for one in faults])
    else:
        done(fault)


def _listed(states: Container[str], kinds: Container[str], machine: GroupMachine) -> "list[ListedGroup]":
    return [
        ListedGroup(
            group_id=group.id, protocol_type=group.protocol_type or "", state=group.state.value, kind=group.kind
        )
        for group in machine.groups.values()
        if (not states or group.state.value.lower() in states) and (not kinds or group.kind in kinds)
    ]


def _classic_view(group_id: str, machine: GroupMachine) -> ClassicGroupView:
    group = machine.find_kind(group_id, ClassicGroup)
    is_stable = group.state is State.STABLE
    return ClassicGroupView(
        state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol=(group.protocol or "") if is_stable else "",
        members=tuple(
            ClassicMemberView(
                member_id=one.id,
                instance_id=one.instance_id,
                client_id=one.client_id,
                client_host=one.client_host,
                metadata=one.protocols.get(group.protocol or "", b"") if is_stable else b"",
                assignment=one.assignment if is_stable else b"",
            )
            for one in group.members.values()
        ),
    )


def _consumer_view(group_id: str, default_assignor: str, machine: GroupMachine) -> ConsumerGroupView:
    group = machine.find_kind(group_id, ConsumerGroup)
    return ConsumerGroupView(
        state=group.state.value,
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor=group.assignor(default_assignor),
        members=tuple(
            ConsumerMemberView(member=one, assigned=one.current.assigned, target=group.target.get(one.id, ()))
            for one in group.members.values()
        ),
    )
