"""Record batches that are corrupt or not allowed: each gets its error, and nothing of it is appended."""

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Final

from crc32c import crc32c

from tailrace.client.connection import Connection
from tailrace.log.directory.inspect import verify
from tailrace.records.build import build_batch
from tailrace.records.header import CHECKED_FROM, CRC_AT, LAYOUT
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.hostile import Raw, framed, heard
from tests.unit.doors.kafka.served import Served, with_broker

LAST_DELTA_AT: Final = 23
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_AT: Final = 43
COUNT_AT: Final = 57


def good(**said: Any) -> bytearray:
    return build_batch([NewRecord(value=b"one"), NewRecord(value=b"two")], **said)


def sealed(batch: bytearray) -> bytes:
    """The batch with a correct checksum, whatever its content."""
    struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CHECKED_FROM:])))
    return bytes(batch)


def said(form: str, at: int, *values: int) -> bytes:
    batch = good()
    struct.pack_into(form, batch, at, *values)
    return sealed(batch)


def request(*batches: bytes | None, topic: str = "t", acks: int = -1, **said: Any) -> ProduceRequest:
    """All for the same partition."""
    partitions = tuple(PartitionToProduce(partition=0, records=batch) for batch in batches)
    topics = (TopicToProduce(name=topic, partitions=partitions),)
    return ProduceRequest(acks=acks, timeout_ms=5000, topics=topics, **said)


async def refusal(served: Served, batch: bytes | None, **said: Any) -> Error:
    """Produce a bad batch; returns the error. The log is unchanged, and accepts a good batch at the next offset."""
    partition = served.node.hosted.find("t", 0)
    end, size = partition.log.end, partition.log.size_bytes
    answer = (await served.call(request(batch, **said), 9)).topics[0].partitions[0]
    assert answer.base_offset == -1
    assert answer.error_message
    assert (partition.log.end, partition.log.size_bytes) == (end, size)
    assert await served.produce("t", 1) == end
    return Error(answer.error_code)


def refuses(error: Error, *make: Callable[[], bytes | None], **given: Any) -> Callable[..., None]:
    @with_broker()
    async def test(served: Served) -> None:
        await served.make_topic("t")
        for one in make:
            assert await refusal(served, one(), **given) == error
        assert verify(served.node.ports.disk, served.node.hosted.find("t", 0).log.folder).problems == ()

    return test


test_a_truncated_batch_is_corrupt = refuses(
    Error.CORRUPT_MESSAGE, *(lambda size=size: bytes(good()[:size]) for size in (1, 12, 17, 60, 61, 70))
)
test_a_batch_whose_checksum_does_not_fit_is_corrupt = refuses(
    Error.CORRUPT_MESSAGE, lambda: bytes(good()[:-1]) + b"!", lambda: bytes(good()[:30]) + b"!" + bytes(good()[31:])
)
test_a_length_below_the_header_is_corrupt = refuses(
    Error.CORRUPT_MESSAGE, *(lambda length=length: said(">i", 8, length) for length in (-1, 0, 48, -(2**31), 2**31 - 1))
)
test_count_and_last_delta_that_disagree_are_invalid = refuses(
    Error.INVALID_RECORD,
    lambda: said(">i", COUNT_AT, 3),
    lambda: said(">i", LAST_DELTA_AT, 5),
    lambda: said(">i", LAST_DELTA_AT, -1),
    lambda: said(">i", COUNT_AT, -1),
    lambda: said(">i", COUNT_AT, 2**31 - 1),
)


def no_records() -> bytes:
    batch = good()
    struct.pack_into(">i", batch, LAST_DELTA_AT, -1)
    struct.pack_into(">i", batch, COUNT_AT, 0)
    return sealed(batch)


def millions_in_a_few_bytes() -> bytes:
    batch = good()
    struct.pack_into(">i", batch, LAST_DELTA_AT, 9_999_998)
    struct.pack_into(">i", batch, COUNT_AT, 9_999_999)
    return sealed(batch)


test_more_records_than_bytes_are_invalid = refuses(Error.INVALID_RECORD, millions_in_a_few_bytes, no_records)
test_two_batches_at_once_are_invalid = refuses(Error.INVALID_RECORD, lambda: bytes(good() + good()))
test_nothing_at_all_is_invalid = refuses(Error.INVALID_RECORD, lambda: b"", lambda: None)
test_unknown_attributes_are_invalid = refuses(
    Error.INVALID_RECORD, *(lambda bits=bits: said(">h", CHECKED_FROM, bits) for bits in (5, 7, 0x80, -1))
)
test_control_and_transactional_batches_are_for_coordinators = refuses(
    Error.INVALID_RECORD, lambda: bytes(good(control=True)), lambda: bytes(good(transactional=True))
)
test_a_producer_without_sequence_or_epoch_is_invalid = refuses(
    Error.INVALID_RECORD, lambda: bytes(good(producer_id=5)), lambda: bytes(good(producer_id=5, producer_epoch=0))
)


@with_broker()
async def test_a_transactional_batch_of_nobodys_is_refused(served: Served) -> None:
    await served.make_topic("t")
    batch = bytes(good(producer_id=5, producer_epoch=0, base_sequence=0, transactional=True))
    async with asyncio.timeout(60):
        # until the coordinators are there, whose topic the first request makes
        while (error := await refusal(served, batch, transactional_id="mine")) is Error.NOT_ENOUGH_REPLICAS:
            pass
    assert error is Error.INVALID_PRODUCER_ID_MAPPING


test_acks_of_another_number_are_refused = refuses(Error.INVALID_REQUIRED_ACKS, lambda: bytes(good()), acks=2)
test_times_that_only_a_broker_may_set_are_refused = refuses(
    Error.INVALID_TIMESTAMP, lambda: bytes(good(timestamp_type="LogAppendTime"))
)
test_a_time_far_ahead_is_refused = refuses(
    Error.INVALID_TIMESTAMP,
    lambda: said(">q", MAX_TIMESTAMP_AT, 2**63 - 1),
    lambda: said(">q", MAX_TIMESTAMP_AT, 2**62),
)
test_a_batch_over_the_limit_is_too_large = refuses(
    Error.MESSAGE_TOO_LARGE, lambda: bytes(build_batch([NewRecord(value=bytes(1_100_000))]))
)


def old_message(magic: int) -> bytes:
    """A message of format 0 or 1, as producers of ten years ago sent them."""
    time = struct.pack(">q", 0) if magic else b""
    rest = struct.pack(">bb", magic, 0) + time + struct.pack(">i", -1) + struct.pack(">i", 3) + b"old"
    return struct.pack(">qiI", 0, len(rest) + 4, 0) + rest


test_old_message_formats_are_invalid = refuses(
    Error.INVALID_RECORD, lambda: old_message(0), lambda: old_message(1), lambda: old_message(0) * 5
)
test_formats_to_come_are_corrupt_to_us = refuses(
    Error.CORRUPT_MESSAGE, lambda: bytes(good()[:16]) + b"\x03" + bytes(60)
)


@with_broker()
async def test_one_bad_partition_does_not_spoil_the_others_of_its_request(served: Served) -> None:
    await served.make_topic("t", 2)
    parts = (
        PartitionToProduce(partition=0, records=b"garbage"),
        PartitionToProduce(partition=1, records=bytes(good())),
        PartitionToProduce(partition=2, records=bytes(good())),
        PartitionToProduce(partition=-1, records=bytes(good())),
    )
    topics = (TopicToProduce(name="t", partitions=parts), TopicToProduce(name="nobody", partitions=parts[1:2]))
    answer = await served.call(ProduceRequest(acks=1, timeout_ms=1000, topics=topics), 9)
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert [one.error_code for one in answer.topics[0].partitions] == [Error.CORRUPT_MESSAGE, 0, unknown, unknown]
    assert answer.topics[1].partitions[0].error_code == unknown


@with_broker()
async def test_a_partition_named_twice_gets_both_batches_in_order(served: Served) -> None:
    await served.make_topic("t")
    answer = await served.call(request(bytes(good()), bytes(good())), 9)
    assert [(one.error_code, one.base_offset) for one in answer.topics[0].partitions] == [(0, 0), (0, 2)]


@with_broker()
async def test_with_acks_0_an_error_closes_the_connection_and_names_the_topic(served: Served) -> None:
    await served.make_topic("t")
    for bad in (request(b"garbage", acks=0), request(bytes(good()), topic="nobody", acks=0)):
        with heard() as lines:
            client = await Raw.connect(served.node.kafka_port)
            client.send(framed(bad, 9))
            assert await client.closed()
        (line,) = lines
        assert f"Produce with acks=0 to topic {bad.topics[0].name!r}, partition 0 failed: " in line
    client = await Raw.connect(served.node.kafka_port)
    client.send(framed(request(bytes(good()), acks=0), 9) + framed(MetadataRequest(topics=()), 9))
    assert (await client.answer_to(3, 9)).brokers  # a good one is not answered; what follows is
    assert served.node.hosted.find("t", 0).log.end == 2


@with_broker()
async def test_illegal_topic_names_are_refused_by_name(served: Served) -> None:
    for name in ("", ".", "..", "a b", "a/b", "../../etc", "é", "a" * 250, "a\0b", "a\nb", "__cluster_metadata"):
        asked = await served.call(MetadataRequest(topics=(TopicWanted(name=name),)), 9)
        assert asked.topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION, name
        produced = await served.call(request(bytes(good()), topic=name), 9)
        assert produced.topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION, name
    assert not served.node.hosted.image.topics


@with_broker()
async def test_the_longest_name_that_text_can_have_still_gets_an_answer(served: Served) -> None:
    """The error message repeats the name, and must fit into the response."""
    name = "é" * 16_383
    for version in (3, 8, 9, 12):
        produced = await served.call(request(bytes(good()), topic=name), version)
        assert produced.topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    asked = await served.call(MetadataRequest(topics=(TopicWanted(name=name),)), 9)
    assert asked.topics[0].error_code == Error.INVALID_TOPIC_EXCEPTION


@with_broker()
async def test_thousands_of_batches_at_once_from_one_client_hold_up_nobody_for_long(served: Served) -> None:
    await served.make_topic("t")
    flood = await Connection.connect(served.node.ports.net, "127.0.0.1", served.node.kafka_port)
    answers = [flood.send(request(bytes(good())), 9) for _ in range(3000)]
    assert (await served.call(MetadataRequest(topics=()), 9)).brokers
    async with asyncio.timeout(20):
        offsets = [(await answer).topics[0].partitions[0].base_offset for answer in answers]
    assert offsets == list(range(0, 6000, 2))
    flood.close()


def test_the_header_is_where_these_tests_think() -> None:
    assert LAYOUT.size == COUNT_AT + 4
    assert struct.unpack_from(">q", good(producer_id=7, producer_epoch=0, base_sequence=0), PRODUCER_AT) == (7,)
