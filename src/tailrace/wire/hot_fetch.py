"""Hand-written codec of Fetch: requests are read into tuples, responses are lists of buffers.

Record batches are never copied into a response. The declaration in `wire/messages/fetch.py` is the reference, and
tests compare the two in every version. Tagged fields are decoded only if a partition has some: consumers send none.
Tags of Tailrace's own are used between brokers, and skipped by every other reader: the follower's durable offset (its
log is on disk below it), the leader's log end offset, for a replica that may not vote, the tombstone horizon of a
compacted log, and that the replica must begin anew (ADR 0025).
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace.model.ids import NO_ID, Id
from tailrace.ports.disk import Buffer
from tailrace.wire.hot import (
    INT16,
    INT32,
    INT64,
    Endpoint,
    bounded,
    compact_string,
    endpoints_tags,
    read_tags,
    string,
    tagged_struct,
    tagged_value,
)
from tailrace.wire.primitives import WireError, read_uvarint, skip_tags, uvarint

FIRST_WITH_SESSION: Final = 7
FIRST_FLEXIBLE: Final = 12
FIRST_BY_TOPIC_ID: Final = 13
FIRST_WITHOUT_REPLICA: Final = 15
FIRST_WITH_ENDPOINTS: Final = 16
FIRST_WITH_DIRECTORY: Final = 17
FIRST_BETWEEN_BROKERS: Final = 18

REPLICA_STATE_TAG: Final = 1  # of the request
DIRECTORY_TAG: Final = 0  # of a partition in the request
DURABLE_TAG: Final = 10_000  # Tailrace's own
DIVERGING_TAG: Final = 0  # of a partition in the response
LEADER_TAG: Final = 1
LOG_END_TAG: Final = 10_000  # Tailrace's own, as the next two
HORIZON_TAG: Final = 10_001
BEGIN_ANEW_TAG: Final = 10_002

_HEAD: Final = struct.Struct(">iiiib")
_HEAD_WITHOUT_REPLICA: Final = struct.Struct(">iiib")
_SESSION: Final = struct.Struct(">ii")
_WANTED_4: Final = struct.Struct(">iqi")
_WANTED_5: Final = struct.Struct(">iqqi")
_WANTED_9: Final = struct.Struct(">iiqqi")
_WANTED_12: Final = struct.Struct(">iiqiqi")
_ANSWER_4: Final = struct.Struct(">ihqq")
_ANSWER_5: Final = struct.Struct(">ihqqq")
_ANSWER_12: Final = struct.Struct(">ihqqqBi")
_NO_ABORTED: Final = b"\xff\xff\xff\xff"
_ABORTED: Final = struct.Struct(">qq")
REPLICA_STATE_LAYOUT: Final = struct.Struct(">iq")
_ID: Final = struct.Struct("16s")
_USUAL_TAGS: Final = struct.Struct(">3s16s3sq")  # directory and durable offset, as `hot_replica_fetch` writes them
_BEFORE_DIRECTORY: Final = b"\2" + uvarint(DIRECTORY_TAG) + b"\x10"  # two tags, the first has sixteen bytes
_BEFORE_DURABLE: Final = uvarint(DURABLE_TAG) + b"\x08"
DIVERGING_LAYOUT: Final = struct.Struct(">iq")
LEADER_LAYOUT: Final = struct.Struct(">ii")


class PartitionWanted(NamedTuple):
    partition: int
    leader_epoch: int  # the current leader epoch as the client knows it; -1: not given
    offset: int
    max_bytes: int
    last_epoch: int = -1  # epoch of the last batch that the follower has; -1: not given
    directory: Id = NO_ID  # id of the follower's data directory
    durable: int = -1  # the follower's log is on disk below this offset; -1: not given


class TopicWanted(NamedTuple):
    topic: str | Id
    partitions: list[PartitionWanted]


class FetchHead(NamedTuple):
    replica_id: int  # -1: a consumer
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int
    session_id: int
    session_epoch: int
    topics: list[TopicWanted]
    forgotten: list[tuple[str | Id, list[int]]]
    rack: str


class PartitionFetched(NamedTuple):
    partition: int
    error: int
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    records: Buffer = b""
    leader: int = -1  # hint at the current leader and its epoch, from version 12
    leader_epoch: int = -1
    diverging: tuple[int, int] | None = None  # largest epoch common to both logs, and its end offset on the leader
    log_end: int = -1  # the leader's log end offset, for a replica that may not vote
    preferred_replica: int = -1  # a nearer replica to read from (KIP-392), from version 11
    aborted: Sequence[tuple[int, int]] | None = None  # aborted transactions: producer id, first offset; None: null
    horizon: int = -1  # the tombstone horizon of the leader's log
    begin_anew: bool = False  # the replica must empty its log first


def read_fetch(frame: memoryview, at: int, version: int) -> FetchHead:
    """The request body at `at`, in versions 4 to 18."""
    try:
        if version >= FIRST_FLEXIBLE:
            return _read_flexible(frame, at, version)
        return _read_old(frame, at, version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Fetch version {version} is truncated or malformed: {error}") from None


def _read_old(frame: memoryview, at: int, version: int) -> FetchHead:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _HEAD.unpack_from(frame, at)
    at += _HEAD.size
    session_id, session_epoch = 0, -1
    if version >= FIRST_WITH_SESSION:
        session_id, session_epoch = _SESSION.unpack_from(frame, at)
        at += _SESSION.size
    layout = _WANTED_9 if version >= 9 else _WANTED_5 if version >= 5 else _WANTED_4
    topics, at = _topics_old(frame, at, layout, version)
    forgotten: list[tuple[str | Id, list[int]]] = []
    if version >= FIRST_WITH_SESSION:
        forgotten, at = _forgotten_old(frame, at)
    rack: str | None = ""
    if version >= 11:
        rack, at = string(frame, at)
    head = (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    return FetchHead(*head, topics, forgotten, rack or "")


def _topics_old(frame: memoryview, at: int, layout: struct.Struct, version: int) -> tuple[list[TopicWanted], int]:
    (count,) = INT32.unpack_from(frame, at)
    at += 4
    topics = []
    for _ in range(bounded(count, frame, at)):
        name, at = string(frame, at)
        (partition_count,) = INT32.unpack_from(frame, at)
        at += 4
        partitions = []
        for _ in range(bounded(partition_count, frame, at)):
            fields = layout.unpack_from(frame, at)
            at += layout.size
            if version >= 9:
                partitions.append(PartitionWanted(fields[0], fields[1], fields[2], fields[4]))
            else:
                partitions.append(PartitionWanted(fields[0], -1, fields[1], fields[-1]))
        topics.append(TopicWanted(name or "", partitions))
    return topics, at


def _forgotten_old(frame: memoryview, at: int) -> tuple[list[tuple[str | Id, list[int]]], int]:
    (count,) = INT32.unpack_from(frame, at)
    at += 4
    forgotten: list[tuple[str | Id, list[int]]] = []
    for _ in range(bounded(count, frame, at)):
        name, at = string(frame, at)
        (partition_count,) = INT32.unpack_from(frame, at)
        at += 4
        size = bounded(partition_count, frame, at)
        forgotten.append((name or "", list(struct.unpack_from(f">{size}i", frame, at))))
        at += 4 * size
    return forgotten, at


def _read_flexible(frame: memoryview, at: int, version: int) -> FetchHead:
    replica_id = -1
    if version >= FIRST_WITHOUT_REPLICA:
        max_wait_ms, min_bytes, max_bytes, isolation = _HEAD_WITHOUT_REPLICA.unpack_from(frame, at)
        at += _HEAD_WITHOUT_REPLICA.size
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _HEAD.unpack_from(frame, at)
        at += _HEAD.size
    session_id, session_epoch = _SESSION.unpack_from(frame, at)
    topics, at = _topics_flexible(frame, at + _SESSION.size, version)
    forgotten, at = _forgotten_flexible(frame, at, by_id=version >= FIRST_BY_TOPIC_ID)
    rack, at = compact_string(frame, at)
    tags, at = read_tags(frame, at)
    if version >= FIRST_WITHOUT_REPLICA and (state := tagged_struct(tags, REPLICA_STATE_TAG, REPLICA_STATE_LAYOUT)):
        replica_id = state[0]
    head = (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    return FetchHead(*head, topics, forgotten, rack or "")


def _topic_key(frame: memoryview, at: int, *, by_id: bool) -> tuple[str | Id, int]:
    if by_id:
        return Id(bytes(frame[at : at + 16])), at + 16
    name, at = compact_string(frame, at)
    return name or "", at


def _topics_flexible(frame: memoryview, at: int, version: int) -> tuple[list[TopicWanted], int]:
    by_id = version >= FIRST_BY_TOPIC_ID
    count, at = read_uvarint(frame, at)
    topics = []
    for _ in range(bounded(count - 1, frame, at)):
        topic, at = _topic_key(frame, at, by_id=by_id)
        partition_count, at = read_uvarint(frame, at)
        partitions = []
        for _ in range(bounded(partition_count - 1, frame, at)):
            index, leader_epoch, offset, last_epoch, _, max_bytes = _WANTED_12.unpack_from(frame, at)
            at += _WANTED_12.size
            wanted = PartitionWanted(index, leader_epoch, offset, max_bytes, last_epoch)
            if frame[at]:
                wanted, at = _with_tags(wanted, frame, at, version)
            else:
                at += 1
            partitions.append(wanted)
        at = skip_tags(frame, at, len(frame))
        topics.append(TopicWanted(topic, partitions))
    return topics, at


def _forgotten_flexible(frame: memoryview, at: int, *, by_id: bool) -> tuple[list[tuple[str | Id, list[int]]], int]:
    count, at = read_uvarint(frame, at)
    forgotten: list[tuple[str | Id, list[int]]] = []
    for _ in range(bounded(count - 1, frame, at)):
        topic, at = _topic_key(frame, at, by_id=by_id)
        partition_count, at = read_uvarint(frame, at)
        size = bounded(partition_count - 1, frame, at)
        forgotten.append((topic, list(struct.unpack_from(f">{size}i", frame, at))))
        at = skip_tags(frame, at + 4 * size, len(frame))
    return forgotten, at


def _with_tags(wanted: PartitionWanted, frame: memoryview, at: int, version: int) -> tuple[PartitionWanted, int]:
    """The partition with its tagged fields, which only followers send."""
    if version >= FIRST_BETWEEN_BROKERS and len(frame) - at >= _USUAL_TAGS.size:
        before, directory, between, durable = _USUAL_TAGS.unpack_from(frame, at)
        if before == _BEFORE_DIRECTORY and between == _BEFORE_DURABLE:
            return PartitionWanted(*wanted[:5], Id(directory), durable), at + _USUAL_TAGS.size
    tags, at = read_tags(frame, at)
    if version >= FIRST_WITH_DIRECTORY and (directory := tagged_value(tags, DIRECTORY_TAG, _ID)) is not None:
        wanted = wanted._replace(directory=Id(directory))
    if version >= FIRST_BETWEEN_BROKERS and (durable := tagged_value(tags, DURABLE_TAG, INT64)) is not None:
        wanted = wanted._replace(durable=durable)
    return wanted, at


def write_fetched(
    correlation_id: int,
    version: int,
    error: int,
    session_id: int,
    topics: Sequence[tuple[str | Id, list[PartitionFetched]]],
    endpoints: Sequence[Endpoint] = (),
) -> list[Buffer]:
    """The whole response with its length and header, as buffers to send one after the other.

    `endpoints` are the addresses of the leaders named in `topics`; versions below 16 have no field for them."""
    out: list[Buffer] = []
    body = bytearray(8)
    flexible = version >= FIRST_FLEXIBLE
    body += b"\0\0\0\0\0" if flexible else b"\0\0\0\0"  # the header's tags, throttle time
    if version >= FIRST_WITH_SESSION:
        body += INT16.pack(error) + INT32.pack(session_id)
    body += uvarint(len(topics) + 1) if flexible else INT32.pack(len(topics))
    head = body
    for topic, partitions in topics:
        if isinstance(topic, str):
            raw = topic.encode()
            body += (uvarint(len(raw) + 1) if flexible else INT16.pack(len(raw))) + raw
        else:
            body += topic
        body += uvarint(len(partitions) + 1) if flexible else INT32.pack(len(partitions))
        for partition in partitions:
            write = _partition_flexible if flexible else _partition_old
            body = write(out, body, version, partition)
        if flexible:
            body += b"\0"
    if flexible:
        body += endpoints_tags(endpoints) if version >= FIRST_WITH_ENDPOINTS else b"\0"
    out.append(body)
    INT32.pack_into(head, 0, sum(map(len, out)) - 4)
    INT32.pack_into(head, 4, correlation_id)
    return out


def _partition_old(out: list[Buffer], body: bytearray, version: int, one: PartitionFetched) -> bytearray:
    if version >= 5:
        body += _ANSWER_5.pack(one.partition, one.error, one.high_watermark, one.last_stable, one.log_start)
    else:
        body += _ANSWER_4.pack(one.partition, one.error, one.high_watermark, one.last_stable)
    body += _NO_ABORTED if one.aborted is None else _aborted_old(one.aborted)
    if version >= 11:
        body += INT32.pack(one.preferred_replica)
    body += INT32.pack(len(one.records))
    return _put_records(out, body, one.records)


def _partition_flexible(out: list[Buffer], body: bytearray, version: int, one: PartitionFetched) -> bytearray:
    partition, error, high_watermark, last_stable, log_start, records = one[:6]
    leader, epoch, diverging, log_end, preferred, aborted, horizon, begin_anew = one[6:]
    if not aborted:
        count = 0 if aborted is None else 1  # compact length of null, of an empty array
        body += _ANSWER_12.pack(partition, error, high_watermark, last_stable, log_start, count, preferred)
    else:
        body += _ANSWER_5.pack(partition, error, high_watermark, last_stable, log_start)
        body += _aborted_flexible(aborted) + INT32.pack(preferred)
    body += uvarint(len(records) + 1)
    body = _put_records(out, body, records)
    has_own = log_end >= 0 or horizon >= 0 or begin_anew
    body += b"\0" if leader < 0 and epoch < 0 and diverging is None and not has_own else _answer_tags(one)
    return body


def _aborted_old(aborted: Sequence[tuple[int, int]]) -> bytes:
    return INT32.pack(len(aborted)) + b"".join(_ABORTED.pack(*one) for one in aborted)


def _aborted_flexible(aborted: Sequence[tuple[int, int]]) -> bytes:
    return uvarint(len(aborted) + 1) + b"".join(_ABORTED.pack(*one) + b"\0" for one in aborted)


def _answer_tags(one: PartitionFetched) -> bytes:
    tags = []
    if one.diverging is not None:
        tags.append(_tag(DIVERGING_TAG, DIVERGING_LAYOUT.pack(*one.diverging) + b"\0"))
    if one.leader >= 0 or one.leader_epoch >= 0:
        tags.append(_tag(LEADER_TAG, LEADER_LAYOUT.pack(one.leader, one.leader_epoch) + b"\0"))
    if one.log_end >= 0:
        tags.append(_tag(LOG_END_TAG, INT64.pack(one.log_end)))
    if one.horizon >= 0:
        tags.append(_tag(HORIZON_TAG, INT64.pack(one.horizon)))
    if one.begin_anew:
        tags.append(_tag(BEGIN_ANEW_TAG, b"\1"))
    return uvarint(len(tags)) + b"".join(tags)


def _tag(tag: int, value: bytes) -> bytes:
    return uvarint(tag) + uvarint(len(value)) + value


def _put_records(out: list[Buffer], body: bytearray, records: Buffer) -> bytearray:
    if not records:
        return body
    out.append(body)
    out.append(records)
    return bytearray()
