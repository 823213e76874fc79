"""Requests that look like the last one are read and answered as if each were the first."""

import random
from dataclasses import replace

import pytest

from tailrace.model.ids import Id
from tailrace.model.limits import PRODUCE_TEMPLATE_MAX_BYTES
from tailrace.wire.compile import encode
from tailrace.wire.headers import PRODUCE_KEY, REQUEST_START_BYTES, read_request_header, request_header
from tailrace.wire.hot_produce import (
    PartitionAnswer,
    PartitionData,
    ProduceHead,
    TopicData,
    read_produce,
    write_produced,
)
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tailrace.wire.primitives import WireError, uvarint
from tailrace.wire.produce_templates import Alike, alike
from tests.unit.wire.samples import samples

FLEXIBLE_SINCE = {PRODUCE_KEY: 9}
SIZES = [0, 1, 61, 125, 126, 127, 300, 16_381, 16_382, 16_383, 20_000]


def framed(request: ProduceRequest, version: int, correlation_id: int, client_id: str | None) -> bytes:
    flexible = version >= FLEXIBLE_SINCE[PRODUCE_KEY]
    return request_header(PRODUCE_KEY, version, correlation_id, client_id, flexible) + encode(request, version)


def in_full(frame: memoryview) -> tuple[int, int, str | None, ProduceHead]:
    _, version, correlation_id, client_id, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
    return version, correlation_id, client_id, read_produce(frame, at, version)


def usual(chance: random.Random, turn: int) -> ProduceRequest:
    data = PartitionToProduce(partition=turn % 3, records=chance.randbytes(chance.choice(SIZES)))
    topic = TopicToProduce(name="t" * (turn // 70 + 1), topic_id=Id(bytes([turn // 70]) * 16), partitions=(data,))
    return ProduceRequest(acks=1, timeout_ms=turn // 90, topics=(topic,))


def hold_together(like: Alike, frame: memoryview) -> bool:
    """What is read at a glance is what is read in full; whether it could be."""
    again = like.read(frame)
    if again is None:
        return False
    correlation_id, partition, batch = again
    head = ProduceHead(None, like.acks, like.timeout_ms, [TopicData(like.topic, [PartitionData(partition, batch)])])
    assert (like.version, correlation_id, like.client_id, head) == in_full(frame)
    appended = PartitionAnswer(partition, 0, 2**40, -1, 7)
    assert like.answer(correlation_id, partition, 2**40, -1, 7) == write_produced(
        correlation_id, like.version, [(like.topic, [appended])]
    )
    return True


@pytest.mark.parametrize("version", range(9, 14))
def test_requests_in_a_row_are_read_and_answered_as_if_each_were_the_first(version: int) -> None:
    """They differ in what they carry; in between come others, damaged ones, and such that end too early or too late."""
    chance = random.Random(version)
    wild = samples(ProduceRequest, version, 10)
    like: Alike | None = None
    met = 0
    for turn in range(300):
        request = chance.choice(wild) if turn % 7 == 6 else usual(chance, turn)
        raw = framed(request, version, turn, "me" if turn < 200 else None)
        flipped = bytearray(raw)
        flipped[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        for data in (raw, bytes(flipped), raw[: chance.randrange(len(raw))], raw + b"\0"):
            frame = memoryview(bytearray(data))
            if like is not None and hold_together(like, frame):
                met += 1
                continue
            try:
                _, _, client_id, head = in_full(frame)
            except WireError:
                continue
            if data is raw:
                like = alike(frame, version, client_id, head)
    assert met > 300


once = usual(random.Random(1), 1)
no_batch = TopicToProduce(name="t", partitions=(PartitionToProduce(partition=0, records=None),))


@pytest.mark.parametrize(
    ("version", "sent"),
    [
        (8, once),
        (13, replace(once, acks=0)),
        (13, replace(once, acks=7)),
        (11, replace(once, transactional_id="x")),
        (11, replace(once, topics=once.topics * 2)),
        (11, replace(once, topics=(no_batch,))),
    ],
)
def test_what_is_not_usual_is_not_remembered(version: int, sent: ProduceRequest) -> None:
    frame = memoryview(bytearray(framed(sent, version, 1, "me")))
    _, _, client_id, head = in_full(frame)
    assert alike(frame, version, client_id, head) is None


def test_of_a_request_that_says_much_before_its_batch_nothing_is_kept() -> None:
    """An idle connection would hold all of that: a name of kilobytes, or tagged fields of a hundred megabytes."""
    for length, is_kept in ((500, True), (PRODUCE_TEMPLATE_MAX_BYTES, False)):
        named = memoryview(bytearray(framed(once, 13, 1, "x" * length)))
        tags = bytes([1, 5]) + uvarint(length) + bytes(length)
        tagged = framed(once, 13, 1, "me")
        begin = REQUEST_START_BYTES + len("me")
        with_tags = memoryview(bytearray(tagged[:begin] + tags + tagged[begin + 1 :]))
        for frame in (named, with_tags):
            _, _, client_id, head = in_full(frame)
            assert (alike(frame, 13, client_id, head) is not None) is is_kept
