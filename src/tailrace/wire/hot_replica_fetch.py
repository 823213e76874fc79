"""Hand-written codec of the follower's side of Fetch, in version 18. Record batches of the response are not copied.

    request    length, header version 2 (API key, version, correlation id, "replica-N", tags), body
    response   length, header version 1 (correlation id, tags), body

Leader and follower may run different releases, so unknown tags are skipped; any other malformed input raises
`WireError`. The state of the follower's fetch session is kept elsewhere, in `broker/replication/follower_session.py`.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.headers import request_header
from tailrace.wire.hot import INT32, INT64, bounded, read_tags, slice_of, tagged_struct, tagged_value
from tailrace.wire.hot_fetch import (
    BEGIN_ANEW_TAG,
    DIRECTORY_TAG,
    DIVERGING_LAYOUT,
    DIVERGING_TAG,
    DURABLE_TAG,
    HORIZON_TAG,
    LEADER_LAYOUT,
    LEADER_TAG,
    LOG_END_TAG,
    REPLICA_STATE_LAYOUT,
    REPLICA_STATE_TAG,
    PartitionFetched,
    PartitionWanted,
)
from tailrace.wire.primitives import WireError, null_not_allowed, read_uvarint, skip_tags, uvarint

FETCH_KEY: Final = 1
VERSION: Final = 18

_HEAD: Final = struct.Struct(">iiibii")  # max wait, min and max bytes, isolation level, session id and epoch
_WANTED: Final = struct.Struct(">iiqiqi")
_DIRECTORY: Final = uvarint(DIRECTORY_TAG) + b"\x10"  # tag and size; sixteen bytes follow
_DURABLE: Final = uvarint(DURABLE_TAG) + b"\x08"
_CLUSTER_TAG: Final = 0
_READ_UNCOMMITTED: Final = 0
_NO_RACK: Final = b"\1"
_UNKNOWN: Final = -1

_ANSWER_HEAD: Final = struct.Struct(">ihi")  # throttle time, error, session id
BOOL: Final = struct.Struct(">?")
_ANSWER: Final = struct.Struct(">ihqqq")
_ABORTED_BYTES: Final = struct.calcsize(">qq")


class FetchedHead(NamedTuple):
    correlation_id: int
    error: int
    session_id: int
    topics: list[tuple[Id, list[PartitionFetched]]]  # `records` are slices of the frame


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
    frame += request_header(FETCH_KEY, VERSION, correlation_id, f"replica-{replica_id}", True)
    frame += _HEAD.pack(max_wait_ms, min_bytes, max_bytes, _READ_UNCOMMITTED, session_id, session_epoch)
    wanted = list(topics)
    frame += uvarint(len(wanted) + 1)
    for topic, partitions in wanted:
        frame += topic + uvarint(len(partitions) + 1)
        for one in partitions:
            _put_wanted(frame, one)
        frame += b"\0"
    _put_forgotten(frame, list(forgotten))
    frame += _NO_RACK
    _put_tags(frame, replica_id, cluster_id)
    INT32.pack_into(frame, 0, len(frame) - 4)
    return frame


def _put_wanted(frame: bytearray, one: PartitionWanted) -> None:
    partition, leader_epoch, offset, max_bytes, last_epoch, directory, durable = one
    frame += _WANTED.pack(partition, leader_epoch, offset, last_epoch, _UNKNOWN, max_bytes)
    has_directory, has_durable = directory != NO_ID, durable >= 0
    frame.append(has_directory + has_durable)
    if has_directory:
        frame += _DIRECTORY + directory
    if has_durable:
        frame += _DURABLE + INT64.pack(durable)


def _put_forgotten(frame: bytearray, forgotten: list[tuple[Id, Sequence[int]]]) -> None:
    frame += uvarint(len(forgotten) + 1)
    for topic, partitions in forgotten:
        frame += topic + uvarint(len(partitions) + 1) + struct.pack(f">{len(partitions)}i", *partitions) + b"\0"


def _put_tags(frame: bytearray, replica_id: int, cluster_id: str | None) -> None:
    frame.append(1 if cluster_id is None else 2)
    if cluster_id is not None:
        raw = cluster_id.encode()
        named = uvarint(len(raw) + 1) + raw
        frame += uvarint(_CLUSTER_TAG) + uvarint(len(named)) + named
    frame += uvarint(REPLICA_STATE_TAG) + uvarint(REPLICA_STATE_LAYOUT.size + 1)
    frame += REPLICA_STATE_LAYOUT.pack(replica_id, _UNKNOWN) + b"\0"


def read_fetched(frame: memoryview) -> FetchedHead:
    """The leader's whole response, without its length prefix."""
    try:
        return _read(frame)
    except (struct.error, IndexError) as error:
        raise WireError(f"the Fetch response is truncated or malformed: {error}") from None


def _read(frame: memoryview) -> FetchedHead:
    (correlation_id,) = INT32.unpack_from(frame)
    at = skip_tags(frame, INT32.size, len(frame))
    _, error, session_id = _ANSWER_HEAD.unpack_from(frame, at)
    topic_count, at = _count(frame, at + _ANSWER_HEAD.size)
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
        raise WireError(f"the Fetch response has bytes after its last field, at byte {at} of {len(frame)}")
    return FetchedHead(correlation_id, error, session_id, topics)


def _read_partition(frame: memoryview, at: int) -> tuple[PartitionFetched, int]:
    partition, error, high_watermark, last_stable, log_start = _ANSWER.unpack_from(frame, at)
    at = _skip_aborted(frame, at + _ANSWER.size)
    (preferred,) = INT32.unpack_from(frame, at)
    size, at = read_uvarint(frame, at + INT32.size)
    records, at = slice_of(frame, at, size - 1)
    one = PartitionFetched(partition, error, high_watermark, last_stable, log_start, records or b"")
    if not frame[at] and preferred < 0:
        return one, at + 1
    return _with_tags(one._replace(preferred_replica=preferred), frame, at)


def _with_tags(one: PartitionFetched, frame: memoryview, at: int) -> tuple[PartitionFetched, int]:
    tags, at = read_tags(frame, at)
    leader, leader_epoch = tagged_struct(tags, LEADER_TAG, LEADER_LAYOUT) or (-1, -1)
    log_end = tagged_value(tags, LOG_END_TAG, INT64)
    horizon = tagged_value(tags, HORIZON_TAG, INT64)
    return one._replace(
        leader=leader,
        leader_epoch=leader_epoch,
        diverging=tagged_struct(tags, DIVERGING_TAG, DIVERGING_LAYOUT),
        log_end=-1 if log_end is None else log_end,
        horizon=-1 if horizon is None else horizon,
        begin_anew=bool(tagged_value(tags, BEGIN_ANEW_TAG, BOOL)),
    ), at


def _skip_aborted(frame: memoryview, at: int) -> int:
    """The position after the aborted transactions, which a follower does not need: the log has the markers."""
    if not frame[at]:
        return at + 1
    count, at = _count(frame, at)
    for _ in range(count):
        at = skip_tags(frame, at + _ABORTED_BYTES, len(frame))
    return at


def _count(frame: memoryview, at: int) -> tuple[int, int]:
    """The length of a compact array that cannot be null."""
    count, at = read_uvarint(frame, at)
    if not count:
        raise null_not_allowed("an array")
    return bounded(count - 1, frame, at), at
