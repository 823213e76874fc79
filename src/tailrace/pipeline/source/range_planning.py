"""Which offsets each task reads.

One range per partition, in partition order; more when `minPartitions` or `maxRecordsPerPartition` require it: then the
longest ranges are split into pieces of about equal length, in proportion to their share of all offsets.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange


def plan_ranges(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    min_ranges: int | None = None,
    max_records: int | None = None,
) -> list[OffsetRange]:
    whole = [OffsetRange(partition=one, start=start[one], end=end[one]) for one in sorted(end) if start[one] < end[one]]
    if max_records is not None:
        whole = [piece for one in whole for piece in split_range(one, -(-(one.end - one.start) // max_records))]
    if min_ranges is not None and whole and len(whole) < min_ranges:
        whole = [piece for one in whole for piece in split_range(one, _share(one, whole, min_ranges))]
    return whole


def take_first(planned: Sequence[OffsetRange], most: int) -> list[OffsetRange]:
    """The planned ranges that together have at most `most` offsets; ranges nearest to a partition's start first.
    A range is never included without the ranges before it in the same partition."""
    begin: dict[TopicPartition, int] = {}
    for one in planned:
        begin[one.partition] = min(one.start, begin.get(one.partition, one.start))
    found, room = [], most
    for one in sorted(planned, key=lambda one: one.start - begin[one.partition]):
        room -= one.end - one.start
        if room < 0:
            break
        found.append(one)
    return found


def split_range(one: OffsetRange, pieces: int) -> list[OffsetRange]:
    """Split a range into `pieces` ranges whose lengths differ by at most 1; fewer if it has fewer offsets."""
    length = one.end - one.start
    pieces = max(1, min(pieces, length))
    edges = [one.start + length * number // pieces for number in range(pieces + 1)]
    return [OffsetRange(partition=one.partition, start=first, end=last) for first, last in pairwise(edges)]


def _share(one: OffsetRange, whole: Sequence[OffsetRange], min_ranges: int) -> int:
    total = sum(other.end - other.start for other in whole)
    return -(-(one.end - one.start) * min_ranges // total)


def limit_ends(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, int]:
    """End offsets lowered so that at most about `most` offsets are read; each partition gets its share of them."""
    total = sum(end[one] - start[one] for one in end)
    if total <= most:
        return dict(end)
    shares = {one: max(1, (end[one] - start[one]) * most // total) for one in end if end[one] > start[one]}
    return {one: start[one] + shares.get(one, 0) for one in end}
