"""What OffsetCommit and TxnOffsetCommit share: each partition is answered for itself, and what can be committed is, at
once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import require_few
from tailrace.groups.offsets import Committed, check_metadata
from tailrace.model.faults import Fault, UnknownTopic
from tailrace.model.ids import PartitionName
from tailrace.wire.faults import error_of
from tailrace.wire.messages.offset_commit import PartitionToCommit
from tailrace.wire.messages.txn_offset_commit import TxnPartitionToCommit

ToCommit = PartitionToCommit | TxnPartitionToCommit
Codes = list[tuple[int, int]]  # partitions of a topic, and what became of each


async def commit_each(
    call: Call,
    topics: Sequence[tuple[Topic | Fault, Sequence[ToCommit]]],
    commit: Callable[[Mapping[PartitionName, Committed]], Awaitable[None]],
    expires_ms: int = -1,
) -> list[Codes]:
    """Commit what is wanted of each topic, or of none where the fault says why it is not there."""
    require_few(sum(len(partitions) for _, partitions in topics))
    places = [[_placed(call, topic, one) for one in partitions] for topic, partitions in topics]
    wanted = {
        place: _committed(call, one, expires_ms)
        for (_, partitions), found in zip(topics, places, strict=True)
        for one, place in zip(partitions, found, strict=True)
        if isinstance(place, PartitionName)
    }
    outcome: Fault | None = None
    if wanted:
        try:
            await commit(wanted)
        except Fault as fault:
            outcome = fault
    return [
        [
            (one.partition, _code(place if isinstance(place, Fault) else outcome))
            for one, place in zip(partitions, found, strict=True)
        ]
        for (_, partitions), found in zip(topics, places, strict=True)
    ]


def by_name(call: Call, name: str) -> Topic | Fault:
    topic = call.node.hosted.image.topics.get(name)
    return UnknownTopic(f"there is no topic {name}") if topic is None else topic


def _code(fault: Fault | None) -> int:
    return 0 if fault is None else error_of(fault)


def _placed(call: Call, topic: Topic | Fault, one: ToCommit) -> PartitionName | Fault:
    """Which partition is meant, or why nothing can be committed for it."""
    if isinstance(topic, Fault):
        return topic
    if not 0 <= one.partition < len(topic.partitions):
        return UnknownTopic(f"{topic.name} has no partition {one.partition}")
    try:
        check_metadata(one.committed_metadata or "", call.node.settings.offset_metadata_max_bytes)
    except Fault as fault:
        return fault
    return PartitionName(topic.name, one.partition)


def _committed(call: Call, one: ToCommit, expires_ms: int) -> Committed:
    return Committed(
        offset=one.committed_offset,
        leader_epoch=one.committed_leader_epoch,
        metadata=one.committed_metadata or "",
        committed_ms=call.node.ports.clock.wall_ms(),
        expires_ms=expires_ms,
    )
