"""A request that matches a Produce template is read and answered exactly as if it were parsed in full."""

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
from tailrace.wire.produce_templates import ProduceTemplate, produce_template
from tests.unit.wire.samples import samples

FLEXIBLE_SINCE = {PRODUCE_KEY: 9}
SIZES = [0, 1, 61, 125, 126, 127, 300, 16_381, 16_382, 16_383, 20_000]


def framed(request: ProduceRequest, version: int, correlation_id: int, client_id: str | None) -> bytes:
    flexible = version >= FLEXIBLE_SINCE[PRODUCE_KEY]
    return request_header(PRODUCE_KEY, version, correlation_id, client_id, flexible) + encode(request, version)


def in_full(frame: memoryview) -> tuple[int, int, str | None, ProduceHead]:
    _, version, correlation_id, client_id, at = read_request_header(frame, 0, FLEXIBLE_SINCE)
    return version, correlation_id, client_id, read_produce(frame, at, version)


def usual_request(chance: random.Random, turn: int) -> ProduceRequest:
    data = PartitionToProduce(partition=turn % 3, records=chance.randbytes(chance.choice(SIZES)))
    topic = TopicToProduce(name="t" * (turn // 70 + 1), topic_id=Id(bytes([turn // 70]) * 16), partitions=(data,))
    return ProduceRequest(acks=1, timeout_ms=turn // 90, topics=(topic,))


def matches_as_in_full(template: ProduceTemplate, frame: memoryview) -> bool:
    """Whether the template matches the frame; if so, its result must equal that of the full codec."""
    again = template.read(frame)
    if again is None:
        return False
    correlation_id, partition, batch = again
    head = ProduceHead(
        None, template.acks, template.timeout_ms, [TopicData(template.topic, [PartitionData(partition, batch)])]
    )
    assert (template.version, correlation_id, template.client_id, head) == in_full(frame)
    appended = PartitionAnswer(partition, 0, 2**40, -1, 7)
    assert template.answer(correlation_id, partition, 2**40, -1, 7) == write_produced(
        correlation_id, template.version, [(template.topic, [appended])]
    )
    return True


@pytest.mark.parametrize("version", range(9, 14))
def test_matching_requests_are_read_and_answered_as_in_full(version: int) -> None:
    """A sequence of similar requests, mixed with different, damaged, truncated and overlong ones."""
    chance = random.Random(version)
    wild = samples(ProduceRequest, version, 10)
    template: ProduceTemplate | None = None
    met = 0
    for turn in range(300):
        request = chance.choice(wild) if turn % 7 == 6 else usual_request(chance, turn)
        raw = framed(request, version, turn, "me" if turn < 200 else None)
        flipped = bytearray(raw)
        flipped[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        for data in (raw, bytes(flipped), raw[: chance.randrange(len(raw))], raw + b"\0"):
            frame = memoryview(bytearray(data))
            if template is not None and matches_as_in_full(template, frame):
                met += 1
                continue
            try:
                _, _, client_id, head = in_full(frame)
            except WireError:
                continue
            if data is raw:
                template = produce_template(frame, version, client_id, head)
    assert met > 300


once = usual_request(random.Random(1), 1)
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
def test_unusual_requests_have_no_template(version: int, sent: ProduceRequest) -> None:
    frame = memoryview(bytearray(framed(sent, version, 1, "me")))
    _, _, client_id, head = in_full(frame)
    assert produce_template(frame, version, client_id, head) is None


def test_a_request_with_many_bytes_before_its_batch_has_no_template() -> None:
    """An idle connection would hold all of it: a client id of kilobytes, or tagged fields of a hundred megabytes."""
    for length, is_kept in ((500, True), (PRODUCE_TEMPLATE_MAX_BYTES, False)):
        named = memoryview(bytearray(framed(once, 13, 1, "x" * length)))
        tags = bytes([1, 5]) + uvarint(length) + bytes(length)
        tagged = framed(once, 13, 1, "me")
        begin = REQUEST_START_BYTES + len("me")
        with_tags = memoryview(bytearray(tagged[:begin] + tags + tagged[begin + 1 :]))
        for frame in (named, with_tags):
            _, _, client_id, head = in_full(frame)
            assert (produce_template(frame, 13, client_id, head) is not None) is is_kept
