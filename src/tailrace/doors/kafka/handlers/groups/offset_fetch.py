"""OffsetFetch: the committed offsets of a group; from version 8 on, of several groups.

A partition without a committed offset has offset -1, which is no error. With `require_stable`, a partition whose offset
an open transaction has committed has the error UNSTABLE_OFFSET_COMMIT: a consumer that continued from the previous
offset might process again what the transaction has processed.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tailrace.broker.services.groups import CommittedOffsets, OffsetReader
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import each, partitions_once, repeated, require_few
from tailrace.model.faults import Fault, InvalidRequest, UnknownTopicId, UnstableOffset
from tailrace.model.ids import NO_EPOCH, NO_ID, Id, PartitionName, show_id
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_fetch import (
    FetchedGroup,
    FetchedGroupTopic,
    FetchedPartition,
    FetchedTopic,
    GroupWanted,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

FIRST_WITH_ERROR: Final = 2
FIRST_WITH_GROUPS: Final = 8
FIRST_BY_ID: Final = 10
NO_OFFSET: Final = -1


class WantedOffsets(NamedTuple):
    """A topic of a request; the name is empty if the topic id is unknown."""

    name: str
    topic_id: Id
    partitions: Sequence[int]


async def offset_fetch(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    if call.version >= FIRST_WITH_GROUPS:
        return await _groups(request, call)
    topics = None
    if request.topics is not None:
        topics = _once(((one.name, NO_ID), one.partition_indexes) for one in request.topics)
    try:
        fetched = await _fetch(call, request.group_id, topics, OffsetReader(None, NO_EPOCH, request.require_stable))
    except Fault as fault:
        if call.version >= FIRST_WITH_ERROR:
            return OffsetFetchResponse(error_code=error_of(fault))
        fetched = [(topic, [_nothing(one, error_of(fault)) for one in topic.partitions]) for topic in topics or ()]
    return OffsetFetchResponse(
        topics=tuple(FetchedTopic(name=topic.name, partitions=tuple(partitions)) for topic, partitions in fetched)
    )


def _once(named: Iterable[tuple[tuple[str, Id], Sequence[int]]]) -> list[WantedOffsets]:
    return [WantedOffsets(*topic, tuple(numbers)) for topic, numbers in partitions_once(named).items()]


async def _groups(request: OffsetFetchRequest, call: Call) -> OffsetFetchResponse:
    require_few(len(request.groups))
    require_few(sum(len(topic.partition_indexes) for one in request.groups for topic in one.topics or ()))
    twice = repeated(one.group_id for one in request.groups)
    groups = await each(request.groups, lambda one: _group(call, one, request.require_stable, one.group_id in twice))
    return OffsetFetchResponse(groups=tuple(groups))


async def _group(call: Call, wanted: GroupWanted, require_stable: bool, twice: bool) -> FetchedGroup:
    topics = None
    if wanted.topics is not None:
        topics = _once((_named(call, one.name, Id(one.topic_id)), one.partition_indexes) for one in wanted.topics)
    try:
        if twice:
            raise InvalidRequest(f"the request names group {wanted.group_id} twice")
        reader = OffsetReader(wanted.member_id, wanted.member_epoch, require_stable)
        fetched = await _fetch(call, wanted.group_id, topics, reader)
    except Fault as fault:
        return FetchedGroup(group_id=wanted.group_id, error_code=error_of(fault))
    return FetchedGroup(
        group_id=wanted.group_id,
        topics=tuple(
            FetchedGroupTopic(name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions))
            for topic, partitions in fetched
        ),
    )


def _named(call: Call, name: str, topic_id: Id) -> tuple[str, Id]:
    if call.version < FIRST_BY_ID:
        return name, NO_ID
    known = call.services.topics.find(call.caller, topic_id)
    return "" if known is None else known.name, topic_id


async def _fetch(
    call: Call, group_id: str, wanted: Sequence[WantedOffsets] | None, reader: OffsetReader
) -> list[tuple[WantedOffsets, list[FetchedPartition]]]:
    """The committed offsets of the wanted partitions; None: of all partitions that have one."""
    kept = await call.services.groups.committed_offsets(call.caller, group_id, reader)
    topics = _all(call, kept) if wanted is None else wanted
    return [(topic, [_fetched(topic, one, kept) for one in topic.partitions]) for topic in topics]


def _all(call: Call, kept: CommittedOffsets) -> list[WantedOffsets]:
    partitions: dict[str, list[int]] = {}
    for place in kept:
        partitions.setdefault(place.topic, []).append(place.partition)
    topics = call.services.topics.all(call.caller)
    return [
        WantedOffsets(name, topics[name].id if name in topics else NO_ID, numbers)
        for name, numbers in partitions.items()
        if name in topics or call.version < FIRST_BY_ID
    ]


def _fetched(topic: WantedOffsets, partition: int, kept: CommittedOffsets) -> FetchedPartition:
    if not topic.name and topic.topic_id != NO_ID:
        fault = UnknownTopicId(f"there is no topic with id {show_id(topic.topic_id)}")
        return _nothing(partition, error_of(fault))
    place = PartitionName(topic.name, partition)
    if place not in kept:
        return _nothing(partition)
    committed = kept[place]
    if committed is None:
        return _nothing(partition, error_of(UnstableOffset(f"an open transaction has committed an offset of {place}")))
    return FetchedPartition(
        partition=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _nothing(partition: int, error_code: int = 0) -> FetchedPartition:
    return FetchedPartition(partition=partition, committed_offset=NO_OFFSET, metadata="", error_code=error_code)
