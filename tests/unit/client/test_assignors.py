"""`tailrace.client.groups.assignors` and `subscriptions`: the examples of Kafka's Javadoc, and rules for any group."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.client.groups.assignors import ASSIGNORS, Subscriber, assign_in_turn, assign_ranges
from tailrace.client.groups.subscriptions import (
    decode_assignment,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from tailrace.groups.consumer_protocol import (
    VERSION_LAYOUT,
    ConsumerProtocolAssignment,
    ConsumerProtocolPartitions,
    ConsumerProtocolSubscription,
)
from tailrace.model.ids import PartitionName
from tailrace.wire.compile import encode
from tailrace.wire.primitives import WireError


def named(*texts: str) -> tuple[PartitionName, ...]:
    return tuple(PartitionName(text[:-1], int(text[-1])) for text in texts)


BOTH = Subscriber(("t0", "t1"))


def test_range_as_in_kafkas_javadoc() -> None:
    assert assign_ranges({"C0": BOTH, "C1": BOTH}, {"t0": 3, "t1": 3}) == {
        "C0": named("t00", "t01", "t10", "t11"),
        "C1": named("t02", "t12"),
    }


def test_range_gives_the_remainder_to_the_first() -> None:
    members = {name: Subscriber(("t",)) for name in ("a", "b", "c", "d")}
    assert assign_ranges(members, {"t": 6}) == {
        "a": named("t0", "t1"),
        "b": named("t2", "t3"),
        "c": named("t4"),
        "d": named("t5"),
    }


def test_round_robin_as_in_kafkas_javadoc() -> None:
    assert assign_in_turn({"C0": BOTH, "C1": BOTH}, {"t0": 3, "t1": 3}) == {
        "C0": named("t00", "t02", "t11"),
        "C1": named("t01", "t10", "t12"),
    }
    unequal = {"C0": Subscriber(("t0",)), "C1": BOTH, "C2": Subscriber(("t0", "t1", "t2"))}
    assert assign_in_turn(unequal, {"t0": 1, "t1": 2, "t2": 3}) == {
        "C0": named("t00"),
        "C1": named("t10"),
        "C2": named("t11", "t20", "t21", "t22"),
    }


@pytest.mark.parametrize("name", ASSIGNORS)
def test_static_members_come_first_by_instance_id(name: str) -> None:
    members = {"z": Subscriber(("t",), "1"), "y": Subscriber(("t",), "2"), "a": Subscriber(("t",))}
    found = ASSIGNORS[name](members, {"t": 3})
    assert found == {"z": named("t0"), "y": named("t1"), "a": named("t2")}


@pytest.mark.parametrize("name", ASSIGNORS)
def test_topics_that_do_not_exist_are_left_out(name: str) -> None:
    assert ASSIGNORS[name]({"a": BOTH}, {"t1": 1}) == {"a": named("t10")}


topics = st.sampled_from(["t", "u", "v"])


@given(
    members=st.dictionaries(st.sampled_from("abcdef"), st.sets(topics).map(lambda some: tuple(sorted(some)))),
    counts=st.dictionaries(topics, st.integers(1, 9)),
    name=st.sampled_from(sorted(ASSIGNORS)),
)
def test_each_partition_has_one_owner_that_subscribes_to_it(
    members: dict[str, tuple[str, ...]], counts: dict[str, int], name: str
) -> None:
    found = ASSIGNORS[name]({member: Subscriber(some) for member, some in members.items()}, counts)
    owned = [one for some in found.values() for one in some]
    wanted = {topic for some in members.values() for topic in some}
    assert sorted(owned) == sorted(
        PartitionName(one, at) for one in counts if one in wanted for at in range(counts[one])
    )
    assert all(one.topic in members[member] for member, some in found.items() for one in some)


# The bytes


def test_subscriptions_and_assignments_read_back() -> None:
    assert decode_topics(encode_subscription(("t", "u"))) == ("t", "u")
    assert decode_assignment(encode_assignment(named("u1", "t0", "u0"))) == named("t0", "u0", "u1")
    assert decode_assignment(encode_assignment(())) == decode_assignment(b"") == ()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_every_version_is_read(version: int) -> None:
    known, owned = min(version, 3), (ConsumerProtocolPartitions(topic="t", partitions=(1, 0)),)
    subscription = ConsumerProtocolSubscription(topics=("t",), owned_partitions=owned, generation_id=4, rack_id="r")
    later = b"\x01" if version > 3 else b""  # fields that we do not know
    assert decode_topics(VERSION_LAYOUT.pack(version) + encode(subscription, known) + later) == ("t",)
    assignment = ConsumerProtocolAssignment(assigned_partitions=owned, user_data=b"x")
    assert decode_assignment(VERSION_LAYOUT.pack(version) + encode(assignment, known) + later) == named("t0", "t1")


@pytest.mark.parametrize("data", [b"\x00", b"\x00\x00", b"\x00\x00\x00\x00\x00\x09t", b"\x00\x00\xff\xff\xff\xf0"])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_assignment(data)
    with pytest.raises(WireError):
        decode_topics(data)
