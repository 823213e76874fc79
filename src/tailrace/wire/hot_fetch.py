"""Fetch by hand: read into tuples, answered as a list of buffers in which record batches are never copied.

The slow twin is the declaration in `wire/messages/fetch.py`; tests hold the two together. Consumers send no tags: they
are read only where there are some. Between brokers there are two of our own, which every other reader skips: how much
of its log a follower has on its disk, and where the leader's log ends, for a replica that may not vote.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from tailrace.model.ids import NO_ID, Id
from tailrace.ports.disk import Buffer
from tailrace.wire.hot import (
    Endpoint,
    bounded,
    compact_string,
    endpoints_tags,
    int16,
    int32,
    int64,
    read_tags,
    string,
    tagged_struct,
    tagged_value,
)
from tailrace.wire.primitives import WireError, read_uvarint, skip_tags, uvarint

first_with_session: Final = 7
first_flexible: Final = 12
first_by_topic_id: Final = 13
first_without_replica: Final = 15
first_with_endpoints: Final = 16
first_with_directory: Final = 17
first_between_brokers: Final = 18

replica_state_tag: Final = 1  # of a request
directory_tag: Final = 0  # of a partition that is wanted
durable_tag: Final = 10_000  # our own
diverging_tag: Final = 0  # of a partition that is answered
leader_tag: Final = 1
log_end_tag: Final = 10_000  # our own

_head: Final = struct.Struct(">iiiib")
_head_without_replica: Final = struct.Struct(">iiib")
_session: Final = struct.Struct(">ii")
_wanted_4: Final = struct.Struct(">iqi")
_wanted_5: Final = struct.Struct(">iqqi")
_wanted_9: Final = struct.Struct(">iiqqi")
_wanted_12: Final = struct.Struct(">iiqiqi")
_answer_4: Final = struct.Struct(">ihqq")
_answer_5: Final = struct.Struct(">ihqqq")
_answer_12: Final = struct.Struct(">ihqqqBi")
_no_aborted: Final = b"\xff\xff\xff\xff"
_aborted: Final = struct.Struct(">qq")
replica_state_layout: Final = struct.Struct(">iq")
_id: Final = struct.Struct("16s")
_usual_tags: Final = struct.Struct(">3s16s3sq")  # directory and durable offset, as `hot_replica_fetch` writes them
_before_directory: Final = b"\2" + uvarint(directory_tag) + b"\x10"  # two tags; the first is this, of sixteen bytes
_before_durable: Final = uvarint(durable_tag) + b"\x08"
diverging_layout: Final = struct.Struct(">iq")
leader_layout: Final = struct.Struct(">ii")


class PartitionWanted(NamedTuple):
    partition: int
    leader_epoch: int  # what the client believes; -1: it does not say
    offset: int
    max_bytes: int
    last_epoch: int = -1  # of the last batch that a follower has; -1: it does not say
    directory: Id = NO_ID  # the follower's disk
    durable: int = -1  # the follower has all below on that disk; -1: it does not say


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
    leader: int = -1  # with its epoch a hint, version 12 on
    leader_epoch: int = -1
    diverging: tuple[int, int] | None = None  # the largest epoch the logs share, and where the leader's part of it ends
    log_end: int = -1  # the leader's, for a replica that may not vote
    preferred_replica: int = -1  # read there, it is nearer (KIP-392), version 11 on
    aborted: Sequence[tuple[int, int]] | None = None  # producers, and where what they aborted began; None: not asked


def read_fetch(frame: memoryview, at: int, version: int) -> FetchHead:
    """The body that begins at `at`, in versions 4 to 18."""
    try:
        if version >= first_flexible:
            return _read_flexible(frame, at, version)
        return _read_old(frame, at, version)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WireError(f"Fetch version {version} is cut short or garbled: {error}") from None


def _read_old(frame: memoryview, at: int, version: int) -> FetchHead:
    replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _head.unpack_from(frame, at)
    at += _head.size
    session_id, session_epoch = 0, -1
    if version >= first_with_session:
        session_id, session_epoch = _session.unpack_from(frame, at)
        at += _session.size
    layout = _wanted_9 if version >= 9 else _wanted_5 if version >= 5 else _wanted_4
    topics, at = _topics_old(frame, at, layout, version)
    forgotten: list[tuple[str | Id, list[int]]] = []
    if version >= first_with_session:
        forgotten, at = _forgotten_old(frame, at)
    rack: str | None = ""
    if version >= 11:
        rack, at = string(frame, at)
    head = (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    return FetchHead(*head, topics, forgotten, rack or "")


def _topics_old(frame: memoryview, at: int, layout: struct.Struct, version: int) -> tuple[list[TopicWanted], int]:
    (count,) = int32.unpack_from(frame, at)
    at += 4
    topics = []
    for _ in range(bounded(count, frame, at)):
        name, at = string(frame, at)
        (partition_count,) = int32.unpack_from(frame, at)
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
    (count,) = int32.unpack_from(frame, at)
    at += 4
    forgotten: list[tuple[str | Id, list[int]]] = []
    for _ in range(bounded(count, frame, at)):
        name, at = string(frame, at)
        (partition_count,) = int32.unpack_from(frame, at)
        at += 4
        size = bounded(partition_count, frame, at)
        forgotten.append((name or "", list(struct.unpack_from(f">{size}i", frame, at))))
        at += 4 * size
    return forgotten, at


def _read_flexible(frame: memoryview, at: int, version: int) -> FetchHead:
    replica_id = -1
    if version >= first_without_replica:
        max_wait_ms, min_bytes, max_bytes, isolation = _head_without_replica.unpack_from(frame, at)
        at += _head_without_replica.size
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _head.unpack_from(frame, at)
        at += _head.size
    session_id, session_epoch = _session.unpack_from(frame, at)
    topics, at = _topics_flexible(frame, at + _session.size, version)
    forgotten, at = _forgotten_flexible(frame, at, by_id=version >= first_by_topic_id)
    rack, at = compact_string(frame, at)
    tags, at = read_tags(frame, at)
    if version >= first_without_replica and (state := tagged_struct(tags, replica_state_tag, replica_state_layout)):
        replica_id = state[0]
    head = (replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch)
    return FetchHead(*head, topics, forgotten, rack or "")


def _topic_key(frame: memoryview, at: int, *, by_id: bool) -> tuple[str | Id, int]:
    if by_id:
        return Id(bytes(frame[at : at + 16])), at + 16
    name, at = compact_string(frame, at)
    return name or "", at


def _topics_flexible(frame: memoryview, at: int, version: int) -> tuple[list[TopicWanted], int]:
    by_id = version >= first_by_topic_id
    count, at = read_uvarint(frame, at)
    topics = []
    for _ in range(bounded(count - 1, frame, at)):
        topic, at = _topic_key(frame, at, by_id=by_id)
        partition_count, at = read_uvarint(frame, at)
        partitions = []
        for _ in range(bounded(partition_count - 1, frame, at)):
            index, leader_epoch, offset, last_epoch, _, max_bytes = _wanted_12.unpack_from(frame, at)
            at += _wanted_12.size
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
    """What only followers say of a partition."""
    if version >= first_between_brokers and len(frame) - at >= _usual_tags.size:
        before, directory, between, durable = _usual_tags.unpack_from(frame, at)
        if before == _before_directory and between == _before_durable:
            return PartitionWanted(*wanted[:5], Id(directory), durable), at + _usual_tags.size
    tags, at = read_tags(frame, at)
    if version >= first_with_directory and (directory := tagged_value(tags, directory_tag, _id)) is not None:
        wanted = wanted._replace(directory=Id(directory))
    if version >= first_between_brokers and (durable := tagged_value(tags, durable_tag, int64)) is not None:
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
    """The whole answer with its length and header, as buffers to send one after the other.

    `endpoints` are those of the leaders that partitions name, for versions that have room for them."""
    out: list[Buffer] = []
    body = bytearray(8)
    flexible = version >= first_flexible
    body += b"\0\0\0\0\0" if flexible else b"\0\0\0\0"  # the header's tags, throttle time
    if version >= first_with_session:
        body += int16.pack(error) + int32.pack(session_id)
    body += uvarint(len(topics) + 1) if flexible else int32.pack(len(topics))
    head = body
    for topic, partitions in topics:
        if isinstance(topic, str):
            raw = topic.encode()
            body += (uvarint(len(raw) + 1) if flexible else int16.pack(len(raw))) + raw
        else:
            body += topic
        body += uvarint(len(partitions) + 1) if flexible else int32.pack(len(partitions))
        for partition in partitions:
            write = _partition_flexible if flexible else _partition_old
            body = write(out, body, version, partition)
        if flexible:
            body += b"\0"
    if flexible:
        body += endpoints_tags(endpoints) if version >= first_with_endpoints else b"\0"
    out.append(body)
    int32.pack_into(head, 0, sum(map(len, out)) - 4)
    int32.pack_into(head, 4, correlation_id)
    return out


def _partition_old(out: list[Buffer], body: bytearray, version: int, one: PartitionFetched) -> bytearray:
    if version >= 5:
        body += _answer_5.pack(one.partition, one.error, one.high_watermark, one.last_stable, one.log_start)
    else:
        body += _answer_4.pack(one.partition, one.error, one.high_watermark, one.last_stable)
    body += _no_aborted if one.aborted is None else _aborted_old(one.aborted)
    if version >= 11:
        body += int32.pack(one.preferred_replica)
    body += int32.pack(len(one.records))
    return _put_records(out, body, one.records)


def _partition_flexible(out: list[Buffer], body: bytearray, version: int, one: PartitionFetched) -> bytearray:
    partition, error, high_watermark, last_stable, log_start, records = one[:6]
    leader, epoch, diverging, log_end, preferred, aborted = one[6:]
    if not aborted:
        count = 0 if aborted is None else 1  # null, or none at all
        body += _answer_12.pack(partition, error, high_watermark, last_stable, log_start, count, preferred)
    else:
        body += _answer_5.pack(partition, error, high_watermark, last_stable, log_start)
        body += _aborted_flexible(aborted) + int32.pack(preferred)
    body += uvarint(len(records) + 1)
    body = _put_records(out, body, records)
    body += b"\0" if leader < 0 and epoch < 0 and diverging is None and log_end < 0 else _answer_tags(one)
    return body


def _aborted_old(aborted: Sequence[tuple[int, int]]) -> bytes:
    return int32.pack(len(aborted)) + b"".join(_aborted.pack(*one) for one in aborted)


def _aborted_flexible(aborted: Sequence[tuple[int, int]]) -> bytes:
    return uvarint(len(aborted) + 1) + b"".join(_aborted.pack(*one) + b"\0" for one in aborted)


def _answer_tags(one: PartitionFetched) -> bytes:
    tags = []
    if one.diverging is not None:
        tags.append(_tag(diverging_tag, diverging_layout.pack(*one.diverging) + b"\0"))
    if one.leader >= 0 or one.leader_epoch >= 0:
        tags.append(_tag(leader_tag, leader_layout.pack(one.leader, one.leader_epoch) + b"\0"))
    if one.log_end >= 0:
        tags.append(_tag(log_end_tag, int64.pack(one.log_end)))
    return uvarint(len(tags)) + b"".join(tags)


def _tag(tag: int, value: bytes) -> bytes:
    return uvarint(tag) + uvarint(len(value)) + value


def _put_records(out: list[Buffer], body: bytearray, records: Buffer) -> bytearray:
    if not records:
        return body
    out.append(body)
    out.append(records)
    return bytearray()
