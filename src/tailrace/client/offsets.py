"""Offsets of partitions, by time or at the ends; and the offsets that groups have committed."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tailrace.client.cluster import GROUP, Cluster, Retry
from tailrace.client.faults import check, error_of
from tailrace.model.ids import PartitionName
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_fetch import OffsetFetchRequest, TopicWanted

LATEST: Final = -1
EARLIEST: Final = -2
NO_OFFSET: Final = -1


def by_topic(partitions: Iterable[PartitionName]) -> dict[str, list[PartitionName]]:
    found: dict[str, list[PartitionName]] = {}
    for one in sorted(partitions):
        found.setdefault(one.topic, []).append(one)
    return found


async def offsets_at(
    cluster: Cluster, times: Mapping[PartitionName, int], *, committed: bool = False
) -> dict[PartitionName, int]:
    """For each partition, the offset of the first record at or after a time in milliseconds; -1 if there is none."""

    async def ask() -> dict[PartitionName, int]:
        found: dict[PartitionName, int] = {}
        for address, partitions in (await cluster.by_leader(times)).items():
            topics = tuple(
                TopicAsked(
                    name=topic,
                    partitions=tuple(PartitionAsked(partition=one.partition, timestamp=times[one]) for one in ones),
                )
                for topic, ones in by_topic(partitions).items()
            )
            try:
                answer = await cluster.call(address, ListOffsetsRequest(isolation_level=int(committed), topics=topics))
            except Retry:
                for one in partitions:
                    cluster.map.forget_leader(one)
                raise
            for topic in answer.topics:
                for part in topic.partitions:
                    one = PartitionName(topic.name, part.partition)
                    if error_of(part.error_code).retriable:
                        cluster.map.forget_leader(one)
                    check(part.error_code, f"look up offsets of {topic.name}-{part.partition}")
                    found[one] = part.offset
        if missing := [one for one in times if one not in found]:
            raise Retry(f"no broker answers for {missing[0].topic}-{missing[0].partition}")
        return found

    return await cluster.retry("look up offsets", ask) if times else {}


async def commit_offsets(
    cluster: Cluster, group: str, offsets: Mapping[PartitionName, int], note: str = "", **member: object
) -> None:
    """Commit offsets of a group; `member` are the fields of the request that name one of its members, if any does."""
    topics = tuple(
        TopicToCommit(
            name=topic,
            partitions=tuple(
                PartitionToCommit(partition=one.partition, committed_offset=offsets[one], committed_metadata=note)
                for one in ones
            ),
        )
        for topic, ones in by_topic(offsets).items()
    )
    request = OffsetCommitRequest(group_id=group, topics=topics, **member)  # type: ignore[arg-type]

    async def ask() -> None:
        answer = await cluster.call_coordinator(GROUP, group, request)
        for topic in answer.topics:
            for one in topic.partitions:
                what = f"commit offsets of {topic.name}-{one.partition} for group {group}"
                cluster.check_coordinated(GROUP, group, one.error_code, what)

    if offsets:
        await cluster.retry(f"commit offsets of group {group}", ask)


async def committed_offsets(
    cluster: Cluster, group: str, partitions: Iterable[PartitionName], *, stable: bool = False
) -> dict[PartitionName, int]:
    """The committed offsets of a group, without the partitions that have none.

    With `stable`, wait for transactions that are about to commit others.
    """
    found = await noted_offsets(cluster, group, partitions, stable=stable)
    return {partition: one.offset for partition, one in found.items()}


class Noted(NamedTuple):
    """A committed offset, and the note that was stored with it."""

    offset: int
    note: str


async def noted_offsets(
    cluster: Cluster, group: str, partitions: Iterable[PartitionName] | None = None, *, stable: bool = False
) -> dict[PartitionName, Noted]:
    """As `committed_offsets`, with their notes; of all partitions if none are named."""
    wanted = None
    if partitions is not None:
        wanted = tuple(
            TopicWanted(name=topic, partition_indexes=tuple(one.partition for one in ones))
            for topic, ones in by_topic(partitions).items()
        )
    request = OffsetFetchRequest(group_id=group, topics=wanted, require_stable=stable)

    async def ask() -> dict[PartitionName, Noted]:
        what = f"read the offsets of group {group}"
        answer = await cluster.call_coordinator(GROUP, group, request)
        cluster.check_coordinated(GROUP, group, answer.error_code, what)
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                cluster.check_coordinated(GROUP, group, one.error_code, what)
                found[PartitionName(topic.name, one.partition)] = Noted(one.committed_offset, one.metadata or "")
        return {partition: one for partition, one in found.items() if one.offset != NO_OFFSET}

    return await cluster.retry(f"read the offsets of group {group}", ask)
