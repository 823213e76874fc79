"""Subscriptions and assignments of ConsumerProtocol, byte by byte in every version, and invalid ones."""

from struct import pack

import pytest

from tailrace.groups.consumer_protocol import (
    ConsumerProtocolPartitions,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    subscribed_topics,
)
from tailrace.model.faults import InconsistentProtocol
from tailrace.model.ids import TopicPartition
from tests.unit.groups.classic.stage import subscription
from tests.unit.groups.consumer.stage import StagedTopics, id_of

TOPICS_PART = pack(">i", 1) + b"\0\1t"
no_user_data = pack(">i", -1)
OWNED_PART = pack(">i", 1) + b"\0\1t" + pack(">iii", 2, 0, 3)


@pytest.mark.parametrize("version", range(5))
def test_a_subscription_is_decoded_in_every_version_and_newer_ones_as_the_newest_known(version: int) -> None:
    data = pack(">h", version) + TOPICS_PART + no_user_data
    data += OWNED_PART if version >= 1 else b""
    data += pack(">i", 7) if version >= 2 else b""
    data += b"\0\1r" if version >= 3 else b""
    data += b"more" if version >= 4 else b""
    found = decode_subscription(data)
    owned = (ConsumerProtocolPartitions(topic="t", partitions=(0, 3)),)
    assert (found.topics, found.owned_partitions) == (("t",), owned if version >= 1 else ())
    assert (found.generation_id, found.rack_id) == (7 if version >= 2 else -1, "r" if version >= 3 else None)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", b"\0\1" + TOPICS_PART])
def test_an_invalid_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(InconsistentProtocol):
        decode_subscription(data)


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_encoded_in_the_version_of_the_subscription_and_decoded_again(version: int) -> None:
    topics = StagedTopics()
    topics.make("t", 4)
    partitions = (TopicPartition(id_of("t"), 0), TopicPartition(id_of("t"), 3))
    written = encode_assignment((*partitions, TopicPartition(id_of("gone"), 1)), topics, pack(">h", version))
    assert written == pack(">h", version) + OWNED_PART + no_user_data
    assert decode_assignment(written, topics) == partitions


def test_an_invalid_assignment_is_decoded_as_empty() -> None:
    assert decode_assignment(b"all", StagedTopics()) == ()
    assert decode_assignment(b"", StagedTopics()) == ()


def test_the_subscribed_topics_of_all_members() -> None:
    assert subscribed_topics([subscription("t", "u"), subscription("u"), subscription()]) == frozenset({"t", "u"})
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", subscription("topic")[:9]])
def test_one_invalid_subscription_makes_the_subscribed_topics_unknown(data: bytes) -> None:
    assert subscribed_topics([subscription("t"), data]) is None
