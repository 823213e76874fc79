"""The follower's side of Fetch by hand, in version 18: its question in one frame, the answer without a copy of a batch.

    question   length, header version 2 (key, version, correlation id, "replica-N", tags), body
    answer     length, header version 1 (correlation id, tags), body

Leader and follower may be of different releases, so unknown tags are passed over; all else that is not as it should be
is one `WireError`. What a follower has to remember of its fetch session is not in here.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.headers import request_header
from tailrace.wire.hot import bounded, int32, int64, read_tags, slice_of, tagged_struct, tagged_value
from tailrace.wire.hot_fetch import (
    PartitionFetched,
    PartitionWanted,
    directory_tag,
    diverging_layout,
    diverging_tag,
    durable_tag,
    leader_layout,
    leader_tag,
    log_end_tag,
    replica_state_layout,
    replica_state_tag,
)
from tailrace.wire.primitives import WireError, null_in, read_uvarint, skip_tags, uvarint

fetch_key: Final = 1
version: Final = 18

_head: Final = struct.Struct(">iiibii")  # max wait, min and max bytes, isolation level, session id and epoch
_wanted: Final = struct.Struct(">iiqiqi")
_directory: Final = uvarint(directory_tag) + b"\x10"  # sixteen bytes follow
_durable: Final = uvarint(durable_tag) + b"\x08"
_cluster_tag: Final = 0
_read_uncommitted: Final = 0
_no_rack: Final = b"\1"
_unknown: Final = -1

_answer_head: Final = struct.Struct(">ihi")  # throttle time, error, session id
_answer: Final = struct.Struct(">ihqqq")
_aborted_bytes: Final = struct.calcsize(">qq")


class FetchedHead(NamedTuple):
    correlation_id: int
    error: int
    session_id: int
    topics: list[tuple[Id, list[PartitionFetched]]]  # their records are slices of the frame


def write_replica_fetch(
    correlation_id: int,
    *,
    replica_id: int,
    max_wait_ms: int,
    min_bytes: int,
    max_bytes: int,
    session_id: int,
    session_epoch: int,
    topics: Iterable[tuple[Id, Sequence[PartitionWanted]]],
    forgotten: Iterable[tuple[Id, Sequence[int]]],
    cluster_id: str | None = None,
) -> bytearray:
    """The whole request with its length and header."""
    frame = bytearray(4)
    frame += request_header(fetch_key, version, correlation_id, f"replica-{replica_id}", True)
    frame += _head.pack(max_wait_ms, min_bytes, max_bytes, _read_uncommitted, session_id, session_epoch)
    wanted = list(topics)
    frame += uvarint(len(wanted) + 1)
    for topic, partitions in wanted:
        frame += topic + uvarint(len(partitions) + 1)
        for one in partitions:
            _put_wanted(frame, one)
        frame += b"\0"
    _put_forgotten(frame, list(forgotten))
    frame += _no_rack
    _put_tags(frame, replica_id, cluster_id)
    int32.pack_into(frame, 0, len(frame) - 4)
    return frame


def _put_wanted(frame: bytearray, one: PartitionWanted) -> None:
    partition, leader_epoch, offset, max_bytes, last_epoch, directory, durable = one
    frame += _wanted.pack(partition, leader_epoch, offset, last_epoch, _unknown, max_bytes)
    named, synced = directory != NO_ID, durable >= 0
    frame.append(named + synced)
    if named:
        frame += _directory + directory
    if synced:
        frame += _durable + int64.pack(durable)


def _put_forgotten(frame: bytearray, forgotten: list[tuple[Id, Sequence[int]]]) -> None:
    frame += uvarint(len(forgotten) + 1)
    for topic, partitions in forgotten:
        frame += topic + uvarint(len(partitions) + 1) + struct.pack(f">{len(partitions)}i", *partitions) + b"\0"


def _put_tags(frame: bytearray, replica_id: int, cluster_id: str | None) -> None:
    frame.append(1 if cluster_id is None else 2)
    if cluster_id is not None:
        raw = cluster_id.encode()
        named = uvarint(len(raw) + 1) + raw
        frame += uvarint(_cluster_tag) + uvarint(len(named)) + named
    frame += uvarint(replica_state_tag) + uvarint(replica_state_layout.size + 1)
    frame += replica_state_layout.pack(replica_id, _unknown) + b"\0"


def read_fetched(frame: memoryview) -> FetchedHead:
    """A leader's whole answer, without its length."""
    try:
        return _read(frame)
    except (struct.error, IndexError) as error:
        raise WireError(f"an answer to Fetch is cut short or garbled: {error}") from None


def _read(frame: memoryview) -> FetchedHead:
    (correlation_id,) = int32.unpack_from(frame)
    at = skip_tags(frame, int32.size, len(frame))
    _, error, session_id = _answer_head.unpack_from(frame, at)
    topic_count, at = _count(frame, at + _answer_head.size)
    topics = []
    for _ in range(topic_count):
        topic = Id(bytes(frame[at : at + 16]))
        partition_count, at = _count(frame, at + 16)
        partitions = []
        for _ in range(partition_count):
            partition, at = _read_partition(frame, at)
            partitions.append(partition)
        at = skip_tags(frame, at, len(frame))
        topics.append((topic, partitions))
    if skip_tags(frame, at, len(frame)) != len(frame):
        raise WireError(f"an answer to Fetch goes on after its last field, at {at} of {len(frame)} bytes")
    return FetchedHead(correlation_id, error, session_id, topics)


def _read_partition(frame: memoryview, at: int) -> tuple[PartitionFetched, int]:
    partition, error, high_watermark, last_stable, log_start = _answer.unpack_from(frame, at)
    at = _skip_aborted(frame, at + _answer.size)
    (preferred,) = int32.unpack_from(frame, at)
    size, at = read_uvarint(frame, at + int32.size)
    records, at = slice_of(frame, at, size - 1)
    one = PartitionFetched(partition, error, high_watermark, last_stable, log_start, records or b"")
    if not frame[at] and preferred < 0:
        return one, at + 1
    return _with_tags(one._replace(preferred_replica=preferred), frame, at)


def _with_tags(one: PartitionFetched, frame: memoryview, at: int) -> tuple[PartitionFetched, int]:
    tags, at = read_tags(frame, at)
    leader, leader_epoch = tagged_struct(tags, leader_tag, leader_layout) or (-1, -1)
    log_end = tagged_value(tags, log_end_tag, int64)
    return one._replace(
        leader=leader,
        leader_epoch=leader_epoch,
        diverging=tagged_struct(tags, diverging_tag, diverging_layout),
        log_end=-1 if log_end is None else log_end,
    ), at


def _skip_aborted(frame: memoryview, at: int) -> int:
    """Step over aborted transactions: a follower finds the markers in the log."""
    if not frame[at]:
        return at + 1
    count, at = _count(frame, at)
    for _ in range(count):
        at = skip_tags(frame, at + _aborted_bytes, len(frame))
    return at


def _count(frame: memoryview, at: int) -> tuple[int, int]:
    """The length of a compact array that cannot be null."""
    count, at = read_uvarint(frame, at)
    if not count:
        raise null_in("an array")
    return bounded(count - 1, frame, at), at
