"""The follower's Fetch codec against the leader's and against the declarations."""

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.headers import read_request_header, response_header
from tailrace.wire.hot import Endpoint
from tailrace.wire.hot_fetch import PartitionFetched, PartitionWanted, TopicWanted, read_fetch, write_fetched
from tailrace.wire.hot_replica_fetch import VERSION, FetchedHead, read_fetched, write_replica_fetch
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse
from tailrace.wire.primitives import WireError
from tests.unit.wire.samples import samples

int32s = some.integers(-(2**31), 2**31 - 1)
int64s = some.integers(-(2**63), 2**63 - 1)
offsets = some.integers(-1, 2**63 - 1)
ids = some.binary(min_size=16, max_size=16).map(Id)
wanted = some.builds(
    PartitionWanted, int32s, int32s, int64s, int32s, int32s, some.just(NO_ID) | ids, some.just(-1) | offsets
)
leaders = some.tuples(some.just(-1), some.just(-1)) | some.tuples(some.integers(0, 2**31 - 1), int32s)
fetched = some.builds(
    lambda leader, *rest: PartitionFetched(*rest)._replace(leader=leader[0], leader_epoch=leader[1]),
    leaders,
    *(int32s, some.integers(-1, 130), int64s, int64s, int64s, some.binary(max_size=300)),
    *(some.just(-1), some.just(-1), some.none() | some.tuples(int32s, int64s), some.just(-1) | offsets),
    some.integers(-1, 2**31 - 1),
)


def asked(**changes: Any) -> bytearray:
    values: dict[str, Any] = {
        "replica_id": 2,
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1000,
        "session_id": 7,
        "session_epoch": 8,
        "topics": [],
        "forgotten": [],
    }
    return write_replica_fetch(4711, **(values | changes))


def body_of(frame: bytearray) -> memoryview:
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    view = memoryview(frame)[4:]
    api_key, used, correlation_id, client_id, at = read_request_header(view, 0, {1: 12})
    assert (api_key, used, correlation_id, client_id) == (1, VERSION, 4711, "replica-2")
    return view[at:]


def answered(*topics: tuple[Id, list[PartitionFetched]], endpoints: tuple[Endpoint, ...] = ()) -> bytes:
    whole = b"".join(write_fetched(4711, VERSION, 70, 42, topics, endpoints))
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    return whole[4:]


@given(
    topics=some.lists(some.tuples(ids, some.lists(wanted, max_size=4)), max_size=3),
    forgotten=some.lists(some.tuples(ids, some.lists(int32s, max_size=4)), max_size=3),
    cluster_id=some.none() | some.text(max_size=20),
)
@settings(max_examples=200, deadline=None)
def test_the_leader_reads_the_followers_request(topics: Any, forgotten: Any, cluster_id: str | None) -> None:
    raw = body_of(asked(topics=topics, forgotten=forgotten, cluster_id=cluster_id))
    head = read_fetch(raw, 0, VERSION)
    assert (head.replica_id, head.max_wait_ms, head.min_bytes, head.max_bytes) == (2, 500, 1, 1000)
    assert (head.session_id, head.session_epoch, head.isolation, head.rack) == (7, 8, 0, "")
    assert (head.topics, head.forgotten) == ([TopicWanted(*topic) for topic in topics], forgotten)
    declared = decode_whole(FetchRequest, VERSION, raw)
    assert encode(declared, VERSION) == raw
    assert (declared.cluster_id, declared.replica_state.replica_id) == (cluster_id, 2)


@given(topics=some.lists(some.tuples(ids, some.lists(fetched, max_size=4)), max_size=3))
@settings(max_examples=200, deadline=None)
def test_the_follower_reads_the_leaders_response(topics: Any) -> None:
    raw = memoryview(answered(*topics, endpoints=(Endpoint(3, "host", 9092, None),)))
    assert read_fetched(raw) == FetchedHead(4711, 70, 42, topics)


def test_record_batches_are_not_copied() -> None:
    frame = bytearray(answered((Id(b"i" * 16), [PartitionFetched(0, 0, records=b"before")])))
    records = read_fetched(memoryview(frame)).topics[0][1][0].records
    frame[frame.index(b"before") : frame.index(b"before") + 6] = b"behind"
    assert records == b"behind"


def test_truncated_responses_and_trailing_bytes_are_rejected() -> None:
    one = PartitionFetched(0, 0, 1, 2, 3, b"r" * 200, 4, 5, (6, 7), 8, 9)
    raw = answered((Id(b"i" * 16), [one, one]), (Id(b"j" * 16), []), endpoints=(Endpoint(3, "host", 9092, "rack"),))
    read_fetched(memoryview(raw))
    for end in range(len(raw)):
        with pytest.raises(WireError):
            read_fetched(memoryview(raw[:end]))
    with pytest.raises(WireError, match="has bytes after its last field"):
        read_fetched(memoryview(raw + b"\0"))


def test_truncated_requests_are_rejected() -> None:
    one = PartitionWanted(0, 1, 2, 3, 4, Id(b"d" * 16), 5)
    raw = body_of(asked(topics=[(Id(b"i" * 16), [one, one])], forgotten=[(Id(b"j" * 16), [1])], cluster_id="c"))
    for end in range(len(raw)):
        with pytest.raises(WireError):
            read_fetch(raw[:end], 0, VERSION)


@pytest.mark.parametrize("seed", range(10))
def test_the_follower_reads_damaged_responses_as_declared(seed: int) -> None:
    """Or rejects them. It may accept damage in tagged fields that it skips, such as the endpoints of brokers."""
    chance = random.Random(seed)
    header = response_header(1, 4711, True)
    for response in samples(FetchResponse, VERSION, 10, private=True):
        raw = bytearray(encode(response, VERSION))
        _compare(response, header + raw)
        for _ in range(20):
            broken = bytearray(raw)
            for _ in range(chance.choice([1, 1, 2])):
                broken[chance.randrange(len(broken))] = chance.choice([0, 1, 127, 128, 255, chance.randrange(256)])
            try:
                declared = decode_whole(FetchResponse, VERSION, broken)
            except WireError:
                with suppress(WireError):
                    read_fetched(memoryview(header + broken))
            else:
                _compare(declared, header + broken)


def _compare(declared: Any, frame: bytes) -> None:
    head = read_fetched(memoryview(frame))
    assert (head.error, head.session_id) == (declared.error_code, declared.session_id)
    assert [(topic, [_facts(one) for one in answers]) for topic, answers in head.topics] == [
        (topic.topic_id, [_declared_facts(one) for one in topic.partitions]) for topic in declared.topics
    ]


def _facts(one: PartitionFetched) -> tuple[object, ...]:
    return (
        *one[:5],
        bytes(one.records),
        one.leader,
        one.leader_epoch,
        one.diverging or (-1, -1),
        *one[9:11],
        *one[12:],
    )


def _declared_facts(one: Any) -> tuple[object, ...]:
    return (
        *(one.partition, one.error_code, one.high_watermark, one.last_stable_offset, one.log_start_offset),
        b"" if one.records is None else bytes(one.records),
        *(one.current_leader.leader_id, one.current_leader.leader_epoch),
        (one.diverging_epoch.epoch, one.diverging_epoch.end_offset),
        *(one.log_end_offset, one.preferred_read_replica, one.tombstone_horizon, one.begin_anew),
    )


START = response_header(1, 4711, True) + bytes(10)  # throttle time, error, session id
ONE_PARTITION = START + b"\2" + bytes(16) + b"\2" + bytes(30)  # up to the aborted transactions
AFTER_RECORDS = ONE_PARTITION + b"\0" + bytes(4) + b"\1"


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (START + b"\0\0", "cannot be null"),
        (START + b"\2" + bytes(16) + b"\0\0\0", "cannot be null"),
        (START + b"\xff\xff\xff\xff\x0f" + bytes(100), "declares 4294967294 elements"),
        (START + b"\2" + bytes(16) + b"\xff\x7f" + bytes(100), "declares 16382 elements"),
        (ONE_PARTITION + b"\xff\x7f" + bytes(100), "declares 16382 elements"),
        (ONE_PARTITION + b"\0" + bytes(4) + b"\x7f" + bytes(100), "records of 126 bytes"),
        (AFTER_RECORDS + b"\1\0\x0c" + bytes(12) + b"\0\0", "tagged field 0 of a struct does not fill the 12 bytes"),
        (AFTER_RECORDS + b"\1\0\x0e" + bytes(14) + b"\0\0", "tagged field 0 of a struct does not fill the 14 bytes"),
        (AFTER_RECORDS + b"\1\1\x08" + bytes(8) + b"\0\0", "tagged field 1 of a struct does not fill the 8 bytes"),
        (
            AFTER_RECORDS + b"\1\x90\x4e\x07" + bytes(7) + b"\0\0",
            "tagged field 10000 of a struct does not fill the 7 bytes",
        ),
        (AFTER_RECORDS + b"\1\1\x7f" + bytes(9), "declares 127 bytes"),
    ],
)
def test_malformed_responses_are_rejected(frame: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why):
        read_fetched(memoryview(frame))


def test_the_malformed_responses_above_are_valid_otherwise() -> None:
    head = read_fetched(memoryview(AFTER_RECORDS + b"\1\1\x09" + bytes(9) + b"\0\0"))
    assert head.topics == [(NO_ID, [PartitionFetched(0, 0, 0, 0, 0, leader=0, leader_epoch=0, preferred_replica=0)])]
