"""Look up start offsets, end offsets and offsets by timestamp; commit and read the offsets of a group."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, PartitionAsked, TopicAsked
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_fetch import OffsetFetchRequest, TopicWanted

LATEST: Final = -1
EARLIEST: Final = -2
NO_OFFSET: Final = -1
GROUP_KEY: Final = 0

Offsets = dict[TopicPartition, int]


def start_offsets(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Offsets:
    return offsets_at(cluster, dict.fromkeys(partitions, EARLIEST))


def end_offsets(cluster: Cluster, partitions: Sequence[TopicPartition], *, committed: bool) -> Offsets:
    """The offsets up to which a consumer may read; with `committed`, only up to the first open transaction."""
    return offsets_at(cluster, dict.fromkeys(partitions, LATEST), committed=committed)


def recheck_ends(cluster: Cluster, begin: Mapping[TopicPartition, int], end: Offsets, *, committed: bool) -> Offsets:
    """The same end offsets, but an end offset below the begin offset is looked up a second time: a new leader may not
    have known yet up to which offset it may serve records."""
    before = [one for one in end if end[one] < begin.get(one, 0)]
    again = end_offsets(cluster, before, committed=committed)
    return end | {one: min(begin[one], again[one]) for one in before}


def offsets_at(cluster: Cluster, times: Mapping[TopicPartition, int], *, committed: bool = False) -> Offsets:
    """For each partition, the offset of the first record at or after a time in milliseconds; -1 if there is none."""
    return cluster.with_retries(lambda: _offsets_at(cluster, times, committed=committed)) if times else {}


def _offsets_at(cluster: Cluster, times: Mapping[TopicPartition, int], *, committed: bool) -> Offsets:
    found: Offsets = {}
    for connection, partitions in cluster.by_leader(sorted(times)).items():
        topics = tuple(
            TopicAsked(
                name=topic,
                partitions=tuple(PartitionAsked(partition=one.partition, timestamp=times[one]) for one in ones),
            )
            for topic, ones in groupby(partitions, lambda one: one.topic)
        )
        answer = connection.call(ListOffsetsRequest(isolation_level=int(committed), topics=topics))
        for topic in answer.topics:
            for one in topic.partitions:
                partition = TopicPartition(topic.name, one.partition)
                check(one.error_code, f"look up offsets of {partition}")
                found[partition] = one.offset
    return found


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
    """Commit offsets for a group without being a member of the group."""

    def ask() -> None:
        topics = tuple(
            TopicToCommit(
                name=topic,
                partitions=tuple(
                    PartitionToCommit(partition=one.partition, committed_offset=offsets[one], committed_metadata=note)
                    for one in ones
                ),
            )
            for topic, ones in groupby(sorted(offsets), lambda one: one.topic)
        )
        answer = cluster.coordinator(group, GROUP_KEY).call(OffsetCommitRequest(group_id=group, topics=topics))
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code, f"commit offsets of {topic.name}-{one.partition} for group {group}")

    if offsets:
        cluster.with_retries(ask)


def committed_offsets(cluster: Cluster, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """The committed offsets of a group, without the partitions that have none."""

    def ask() -> Offsets:
        wanted = tuple(
            TopicWanted(name=topic, partition_indexes=tuple(one.partition for one in ones))
            for topic, ones in groupby(sorted(partitions), lambda one: one.topic)
        )
        answer = cluster.coordinator(group, GROUP_KEY).call(OffsetFetchRequest(group_id=group, topics=wanted))
        check(answer.error_code, f"read the offsets of group {group}")
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                check(one.error_code, f"read the offsets of group {group}")
                found[TopicPartition(topic.name, one.partition)] = one.committed_offset
        return {partition: offset for partition, offset in found.items() if offset != NO_OFFSET}

    return cluster.with_retries(ask)
