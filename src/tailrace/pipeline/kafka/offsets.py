"""Look up start offsets, end offsets and offsets by timestamp; commit and read the offsets of a group."""

from collections.abc import Mapping, Sequence

from tailrace.client import offsets as client
from tailrace.client.offsets import EARLIEST, LATEST
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition

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
    return cluster.run(client.offsets_at(cluster.core, times, committed=committed))


def commit_offsets(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
    """Commit offsets for a group without being a member of the group."""
    cluster.run(client.commit_offsets(cluster.core, group, offsets, note))


def committed_offsets(cluster: Cluster, group: str, partitions: Sequence[TopicPartition]) -> Offsets:
    """The committed offsets of a group, without the partitions that have none."""
    return cluster.run(client.committed_offsets(cluster.core, group, partitions))
