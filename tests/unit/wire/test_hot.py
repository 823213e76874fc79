"""The hand-written codecs of Produce and Fetch against the declarations: every version, random values, truncations."""

import random
from contextlib import suppress
from typing import Any

import pytest

from tailrace.model.ids import NO_ID, Id
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.hot import Endpoint
from tailrace.wire.hot_fetch import PartitionFetched, read_fetch, write_fetched
from tailrace.wire.hot_produce import PartitionAnswer, read_produce, write_produced
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse, PartitionToFetch, TopicToFetch
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, ProduceResponse, TopicToProduce
from tailrace.wire.primitives import WireError
from tests.unit.wire.samples import samples

produce_versions = range(3, 14)
fetch_versions = range(4, 19)
CORRELATION_ID = 0x01020304


def view(raw: bytes) -> memoryview:
    return memoryview(bytearray(raw))


@pytest.mark.parametrize("version", produce_versions)
def test_produce_is_read_as_declared(version: int) -> None:
    for request in samples(ProduceRequest, version, 30):
        head = read_produce(view(encode(request, version)), 0, version)
        assert (head.transactional_id, head.acks, head.timeout_ms) == (
            request.transactional_id,
            request.acks,
            request.timeout_ms,
        )
        assert len(head.topics) == len(request.topics)
        for (key, partitions), topic in zip(head.topics, request.topics, strict=True):
            assert key == (topic.topic_id if version >= 13 else topic.name)
            assert [(one.partition, one.records) for one in partitions] == [
                (one.partition, one.records) for one in topic.partitions
            ]


@pytest.mark.parametrize("version", fetch_versions)
def test_fetch_is_read_as_declared(version: int) -> None:
    for request in samples(FetchRequest, version, 30, private=True):
        head = read_fetch(view(encode(request, version)), 0, version)
        assert (head.max_wait_ms, head.min_bytes, head.max_bytes) == (
            request.max_wait_ms,
            request.min_bytes,
            request.max_bytes,
        )
        assert head.isolation == request.isolation_level
        if version >= 7:
            assert (head.session_id, head.session_epoch) == (request.session_id, request.session_epoch)
        assert head.replica_id == (request.replica_state.replica_id if version >= 15 else request.replica_id)
        if version >= 11:
            assert head.rack == request.rack_id
        assert [(topic, [tuple(one) for one in wanted]) for topic, wanted in head.topics] == [
            (_key(topic, version), [_wanted(one, version) for one in topic.partitions]) for topic in request.topics
        ]
        if version >= 7:
            assert [(topic, tuple(numbers)) for topic, numbers in head.forgotten] == [
                (_key(topic, version), topic.partitions) for topic in request.forgotten_topics
            ]


def _key(topic: Any, version: int) -> object:
    return topic.topic_id if version >= 13 else topic.name


def _wanted(one: Any, version: int) -> tuple[int, int, int, int, int, bytes, int]:
    epoch = one.current_leader_epoch if version >= 9 else -1
    last_epoch = one.last_fetched_epoch if version >= 12 else -1
    directory = one.replica_directory_id if version >= 17 else NO_ID
    durable = one.durable_offset if version >= 18 else -1
    return (one.partition, epoch, one.fetch_offset, one.partition_max_bytes, last_epoch, directory, durable)


@pytest.mark.parametrize("version", produce_versions)
def test_truncated_produce_is_rejected_and_trailing_bytes_ignored(version: int) -> None:
    for request in samples(ProduceRequest, version, 3):
        raw = encode(request, version)
        for end in range(len(raw)):
            with pytest.raises(WireError):
                read_produce(view(raw[:end]), 0, version)
        assert read_produce(view(raw + b"\0"), 0, version) == read_produce(view(raw), 0, version)


@pytest.mark.parametrize("version", fetch_versions)
def test_truncated_fetch_is_rejected_and_trailing_bytes_ignored(version: int) -> None:
    for request in samples(FetchRequest, version, 3, private=True):
        raw = encode(request, version)
        for end in range(len(raw)):
            with pytest.raises(WireError):
                read_fetch(view(raw[:end]), 0, version)
        assert read_fetch(view(raw + b"\0"), 0, version) == read_fetch(view(raw), 0, version)


@pytest.mark.parametrize("seed", range(8))
def test_garbled_requests_raise_nothing_but_wire_errors(seed: int) -> None:
    chance = random.Random(seed)
    for cls, read, versions in (
        (ProduceRequest, read_produce, produce_versions),
        (FetchRequest, read_fetch, fetch_versions),
    ):
        for version in versions:
            for request in samples(cls, version, 3, private=True):
                raw = bytearray(encode(request, version))
                for _ in range(chance.randrange(1, 4)):
                    raw[chance.randrange(len(raw))] = chance.randrange(256)
                with suppress(WireError):
                    read(memoryview(raw), 0, version)


ENDPOINTS = (Endpoint(3, "höst", 9092, None), Endpoint(2**31 - 1, "", 0, "räck"))


def _endpoint(one: Any) -> Endpoint:
    return Endpoint(one.node_id, one.host, one.port, one.rack)


def body_of(answer: bytes, flexible: bool) -> bytes:
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert int.from_bytes(answer[4:8], "big") == CORRELATION_ID
    if flexible:
        assert answer[8] == 0
    return answer[9 if flexible else 8 :]


@pytest.mark.parametrize("version", produce_versions)
def test_produce_responses_are_as_declared(version: int) -> None:
    topic: str | Id = Id(b"i" * 16) if version >= 13 else "naïve"
    answers = [
        PartitionAnswer(0, 0, 12, 3456, 7),
        PartitionAnswer(2**31 - 1, 6, message="nö", leader=3, leader_epoch=9),
    ]
    raw = body_of(write_produced(CORRELATION_ID, version, [(topic, answers), (topic, [])], ENDPOINTS), version >= 9)
    response = decode_whole(ProduceResponse, version, raw)
    assert encode(response, version) == raw
    first, second = response.topics[0].partitions
    assert (first.base_offset, first.log_append_time_ms, first.error_code) == (12, 3456, 0)
    assert second.error_code == 6
    if version >= 5:
        assert first.log_start_offset == 7
    if version >= 8:
        assert second.error_message == "nö"
    if version >= 10:
        assert (second.current_leader.leader_id, second.current_leader.leader_epoch) == (3, 9)
        assert first.current_leader.leader_id == -1
    assert [tuple(_endpoint(one)) for one in response.node_endpoints] == (list(ENDPOINTS) if version >= 10 else [])
    assert (response.topics[0].topic_id if version >= 13 else response.topics[0].name) == topic


@pytest.mark.parametrize("version", produce_versions)
@pytest.mark.parametrize("count", [0, 1, 126, 127, 300])
@pytest.mark.parametrize("message", [None, "", "nö", "x" * 126, "x" * 300])
def test_record_errors_of_a_produce_response_are_as_declared(version: int, count: int, message: str | None) -> None:
    topic: str | Id = Id(b"i" * 16) if version >= 13 else "t"
    errors = [(2**31 - 1 - index, "ß" * index) for index in range(count)]
    answers = [PartitionAnswer(0, 87, message=message, record_errors=errors), PartitionAnswer(1, 0, 12, 3456, 7)]
    raw = body_of(write_produced(CORRELATION_ID, version, [(topic, answers)]), version >= 9)
    response = decode_whole(ProduceResponse, version, raw)
    assert encode(response, version) == raw
    rejected, accepted = response.topics[0].partitions
    named = [(one.batch_index, one.message) for one in rejected.record_errors]
    assert named == (errors if version >= 8 else [])
    assert rejected.error_message == (message if version >= 8 else None)
    assert (accepted.record_errors, accepted.error_message, accepted.base_offset) == ((), None, 12)


@pytest.mark.parametrize("version", produce_versions)
@pytest.mark.parametrize("name", ["t", "x" * 126, "x" * 127, "ß" * 64])
def test_a_successful_produce_response_is_as_declared(version: int, name: str) -> None:
    topic: str | Id = Id(b"i" * 16) if version >= 13 else name
    raw = body_of(
        write_produced(CORRELATION_ID, version, [(topic, [PartitionAnswer(3, 0, 12, 3456, 7)])]), version >= 9
    )
    response = decode_whole(ProduceResponse, version, raw)
    assert encode(response, version) == raw
    assert (response.topics[0].topic_id if version >= 13 else response.topics[0].name) == topic
    (answer,) = response.topics[0].partitions
    assert (answer.partition, answer.base_offset, answer.log_append_time_ms) == (3, 12, 3456)


@pytest.mark.parametrize("version", produce_versions)
@pytest.mark.parametrize(("leader", "named"), [(3, ()), (-1, ENDPOINTS)])
def test_an_error_response_keeps_its_leader_hints(version: int, leader: int, named: tuple[Endpoint, ...]) -> None:
    """An error without a message must not take the fast path of successful responses, which has no leader hints."""
    topic: str | Id = Id(b"i" * 16) if version >= 13 else "t"
    answer = PartitionAnswer(0, 6, leader=leader, leader_epoch=9)
    raw = body_of(write_produced(CORRELATION_ID, version, [(topic, [answer])], named), version >= 9)
    response = decode_whole(ProduceResponse, version, raw)
    assert encode(response, version) == raw
    if version >= 10:
        assert response.topics[0].partitions[0].current_leader.leader_id == leader
        assert len(response.node_endpoints) == len(named)


@pytest.mark.parametrize("version", fetch_versions)
def test_fetch_responses_are_as_declared(version: int) -> None:
    topic: str | Id = Id(b"i" * 16) if version >= 13 else "naïve"
    answers = [
        PartitionFetched(0, 0, 10, 9, 1, b"r" * 200),
        PartitionFetched(1, 6, leader=3, leader_epoch=9),
        PartitionFetched(2, 0, 10, 9, 1, memoryview(b"s"), preferred_replica=5, aborted=[(7, 2**40), (8, 0)]),
    ]
    out = write_fetched(CORRELATION_ID, version, 70, 4711, [(topic, answers), (topic, [])], ENDPOINTS)
    raw = body_of(b"".join(out), version >= 12)
    response = decode_whole(FetchResponse, version, raw)
    assert encode(response, version) == raw
    first, second, third = response.topics[0].partitions
    assert (first.records, third.records) == (b"r" * 200, b"s")
    assert (first.high_watermark, first.last_stable_offset) == (10, 9)
    assert first.aborted_transactions is None
    assert [(one.producer_id, one.first_offset) for one in third.aborted_transactions or ()] == [(7, 2**40), (8, 0)]
    if version >= 5:
        assert first.log_start_offset == 1
    if version >= 7:
        assert (response.error_code, response.session_id) == (70, 4711)
    if version >= 12:
        assert (second.current_leader.leader_id, second.current_leader.leader_epoch) == (3, 9)
    if version >= 11:
        assert (first.preferred_read_replica, third.preferred_read_replica) == (-1, 5)
    assert [_endpoint(one) for one in response.node_endpoints] == (list(ENDPOINTS) if version >= 16 else [])


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize("diverging", [None, (7, 2**62)])
@pytest.mark.parametrize("leader", [-1, 2])
@pytest.mark.parametrize("log_end", [-1, 0, 2**62])
@pytest.mark.parametrize(("horizon", "begin_anew"), [(-1, False), (2**62, False), (-1, True)])
def test_responses_to_followers_carry_tagged_fields(
    version: int, diverging: tuple[int, int] | None, leader: int, log_end: int, horizon: int, begin_anew: bool
) -> None:
    answer = PartitionFetched(1, 0, records=b"r", leader=leader, diverging=diverging, log_end=log_end)
    answer = answer._replace(horizon=horizon, begin_anew=begin_anew)
    topic: str | Id = Id(b"i" * 16) if version >= 13 else "t"
    raw = body_of(b"".join(write_fetched(CORRELATION_ID, version, 0, 0, [(topic, [answer])])), True)
    response = decode_whole(FetchResponse, version, raw)
    assert encode(response, version) == raw
    (read,) = response.topics[0].partitions
    assert (read.diverging_epoch.epoch, read.diverging_epoch.end_offset) == (diverging or (-1, -1))
    assert (read.current_leader.leader_id, read.log_end_offset) == (leader, log_end)
    assert (read.tombstone_horizon, read.begin_anew) == (horizon, begin_anew)


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        (b"\1\0\x0f" + bytes(15), "tagged field 0 of a struct does not fill the 15 bytes"),
        (b"\1\x90\x4e\x09" + bytes(9), "tagged field 10000 of a struct does not fill the 9 bytes"),
        (b"\1\0\x7f" + bytes(16), "declares 127 bytes"),
        (b"\xff\xff\x7f" + bytes(16), "at most 32 "),
    ],
)
def test_a_followers_tagged_field_of_the_wrong_size_is_rejected(tags: bytes, why: str) -> None:
    partition = PartitionToFetch(partition=3, fetch_offset=4, partition_max_bytes=5)
    raw = encode(FetchRequest(max_wait_ms=0, min_bytes=1, topics=(TopicToFetch(partitions=(partition,)),)), 18)
    assert raw.endswith(b"\0\0\1\1\0")  # tags of partition and topic, no forgotten topics, no rack, tags of the request
    with pytest.raises(WireError, match=why):
        read_fetch(view(raw[:-5] + tags + b"\0\1\1\0"), 0, 18)


@pytest.mark.parametrize("version", produce_versions)
def test_the_bound_on_partitions_of_a_produce_counts_all_topics(version: int) -> None:
    half = tuple(
        PartitionToProduce(partition=number, records=None) for number in range(PARTITIONS_PER_REQUEST_MAX // 2)
    )
    topics = tuple(TopicToProduce(partitions=partitions) for partitions in (half, half, half[:1]))
    enough, more = (ProduceRequest(acks=1, timeout_ms=0, topics=some) for some in (topics[:2], topics))
    read_produce(view(encode(enough, version)), 0, version)
    with pytest.raises(WireError, match=f"more than {PARTITIONS_PER_REQUEST_MAX} partitions"):
        read_produce(view(encode(more, version)), 0, version)
