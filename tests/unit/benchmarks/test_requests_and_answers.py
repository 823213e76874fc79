"""The load generator's requests follow Kafka's protocol, and it notices every error in a response."""

import socket
import struct

import pytest
from kio.schema.fetch.v12.request import FetchRequest
from kio.schema.produce.v9.request import ProduceRequest
from kio.serial import entity_reader

from benchmarks import frames
from benchmarks.answers import Answers, receive_answer
from benchmarks.batches import name_producer, random_batch
from benchmarks.connection import Refused
from tailrace.records.header import check_batch

HEADER_BYTES = 4 + 2 + 2 + 4 + 2 + len("bench") + 1


def produce_answer(correlation: int, error: int, topic: str = "t") -> bytes:
    partition = struct.pack(">ihqqq", 0, error, 7, -1, 0) + b"\1\0\0"
    body = struct.pack(">i", correlation) + b"\0\2" + frames.compact_text(topic) + b"\2" + partition + b"\0" + bytes(5)
    return struct.pack(">i", len(body)) + body


def test_produce_reads_back() -> None:
    batch = random_batch(records=3, value_bytes=100)
    encoded = frames.produce("events", batch, acks=-1, correlation=5)
    request = entity_reader(ProduceRequest)(encoded, HEADER_BYTES)[0]
    assert request.acks == -1
    assert request.topic_data[0].name == "events"
    assert request.topic_data[0].partition_data[0].records == bytes(batch)
    assert struct.unpack_from(">i", encoded, frames.CORRELATION_AT)[0] == 5
    assert struct.unpack_from(">i", encoded)[0] == len(encoded) - frames.SIZE_BYTES


def test_fetch_asks_for_the_patched_offset() -> None:
    asked = frames.FetchRequest("events", max_bytes=1000, max_wait_ms=20).at(41)
    request = entity_reader(FetchRequest)(bytes(asked), HEADER_BYTES)[0]
    partition = request.topics[0].partitions[0]
    assert (request.topics[0].topic, partition.fetch_offset, partition.partition_max_bytes) == ("events", 41, 1000)


def test_batches_of_a_named_producer_keep_their_checksum() -> None:
    batch = random_batch(records=1, value_bytes=100)
    for sequence in range(3):
        name_producer(batch, 77, 4, sequence)
        header = check_batch(memoryview(batch))
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 4, sequence)


def test_a_batch_that_is_cut_off_does_not_count() -> None:
    batch = bytes(random_batch(records=3, value_bytes=10))
    second = struct.pack(">q", 3) + batch[8:]
    assert list(frames.next_offsets(memoryview(batch + second))) == [3, 6]
    assert list(frames.next_offsets(memoryview(batch + second[:-1]))) == [3]


def test_answers_are_counted_byte_by_byte() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        answers = Answers(ours, frames.produce_error_at("t"))
        for byte in produce_answer(0, 0) + produce_answer(1, 0):
            theirs.sendall(bytes([byte]))
            answers.take()
        assert answers.taken == 2


@pytest.mark.parametrize(
    ("correlation", "error", "expected"), [(0, 6, "error 6"), (1, 0, "response has correlation id 1, expected 0")]
)
def test_a_wrong_answer_is_refused(correlation: int, error: int, expected: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(produce_answer(correlation, error))
        with pytest.raises(Refused, match=expected):
            Answers(ours, frames.produce_error_at("t")).take()


def test_an_answer_may_come_in_pieces_and_one_that_ends_early_is_refused() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        theirs.sendall(struct.pack(">i", 3) + b"abc")
        assert receive_answer(ours, memoryview(bytearray(100))).tobytes() == b"abc"
        theirs.sendall(struct.pack(">i", 3) + b"ab")
        theirs.close()
        with pytest.raises(Refused, match="closed"):
            receive_answer(ours, memoryview(bytearray(100)))
