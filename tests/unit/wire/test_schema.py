"""Declared classes are frozen, slotted, keyword-only values; contradictory declarations are rejected."""

import dataclasses

import pytest

from tailrace.wire.compile import encode
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.schema import Int32, Versions, declaration, fields_of, struct, wire

# The versions of each API in Kafka 4.3, and its first flexible version. Produce 0 to 2 are left out: always rejected.
KAFKA_OFFERS = {
    0: ("Produce", "3-13", 9),
    1: ("Fetch", "4-18", 12),
    2: ("ListOffsets", "1-11", 6),
    3: ("Metadata", "0-13", 9),
    8: ("OffsetCommit", "2-10", 8),
    9: ("OffsetFetch", "1-10", 6),
    10: ("FindCoordinator", "0-6", 3),
    11: ("JoinGroup", "0-9", 6),
    12: ("Heartbeat", "0-4", 4),
    13: ("LeaveGroup", "0-5", 4),
    14: ("SyncGroup", "0-5", 4),
    15: ("DescribeGroups", "0-6", 5),
    16: ("ListGroups", "0-5", 3),
    17: ("SaslHandshake", "0-1", 1),  # never
    18: ("ApiVersions", "0-4", 3),
    19: ("CreateTopics", "2-7", 5),
    20: ("DeleteTopics", "1-6", 4),
    21: ("DeleteRecords", "0-2", 2),
    22: ("InitProducerId", "0-5", 2),
    23: ("OffsetForLeaderEpoch", "2-4", 4),
    24: ("AddPartitionsToTxn", "0-5", 3),
    25: ("AddOffsetsToTxn", "0-4", 3),
    26: ("EndTxn", "0-5", 3),
    27: ("WriteTxnMarkers", "1-2", 1),
    28: ("TxnOffsetCommit", "0-5", 3),
    32: ("DescribeConfigs", "1-4", 4),
    33: ("AlterConfigs", "0-2", 2),
    35: ("DescribeLogDirs", "1-5", 2),
    36: ("SaslAuthenticate", "0-2", 2),
    37: ("CreatePartitions", "0-3", 2),
    42: ("DeleteGroups", "0-2", 2),
    43: ("ElectLeaders", "0-2", 2),
    44: ("IncrementalAlterConfigs", "0-1", 1),
    47: ("OffsetDelete", "0-0", 1),  # never
    55: ("DescribeQuorum", "0-2", 0),
    57: ("UpdateFeatures", "0-2", 0),
    60: ("DescribeCluster", "0-2", 0),
    61: ("DescribeProducers", "0-0", 0),
    65: ("DescribeTransactions", "0-0", 0),
    66: ("ListTransactions", "0-2", 0),
    68: ("ConsumerGroupHeartbeat", "0-1", 0),
    69: ("ConsumerGroupDescribe", "0-1", 0),
    74: ("ListConfigResources", "0-1", 0),
    75: ("DescribeTopicPartitions", "0-0", 0),
    76: ("ShareGroupHeartbeat", "1-1", 0),
    77: ("ShareGroupDescribe", "1-1", 0),
    78: ("ShareFetch", "1-2", 0),
    79: ("ShareAcknowledge", "1-2", 0),
    90: ("DescribeShareGroupOffsets", "0-1", 0),
    91: ("AlterShareGroupOffsets", "0-0", 0),
    92: ("DeleteShareGroupOffsets", "0-0", 0),
}


def test_every_api_has_the_versions_of_one_kafka_release() -> None:
    assert {key: (p.name, str(p.versions), p.flexible.first) for key, p in MESSAGES.items()} == KAFKA_OFFERS


def test_request_and_response_agree() -> None:
    for pair in MESSAGES.values():
        assert declaration(pair.request) == declaration(pair.response)
        assert pair.response.__name__ == f"{pair.name}Response"


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3-5", [3, 5], [2, 6]), ("9+", [9, 30000], [8]), ("4", [4], [3, 5]), ("none", [], [0, 1])],
)
def test_ranges_of_versions(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)
    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)


def test_values_are_frozen_slotted_and_keyword_only() -> None:
    value = TopicWanted(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.name = "b"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.name
    assert not hasattr(value, "__dict__")
    with pytest.raises(TypeError):
        TopicWanted("a")  # type: ignore[call-arg, arg-type]
    with pytest.raises(TypeError, match="name"):
        TopicWanted()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nmae"):
        TopicWanted(name="a", nmae="b")  # type: ignore[call-arg]


def test_values_compare_hash_show_and_are_replaced_as_dataclasses() -> None:
    value = MetadataRequest(topics=(TopicWanted(name="a"),))
    assert value == MetadataRequest(topics=(TopicWanted(name="a"),))
    assert value != MetadataRequest(topics=None)
    assert TopicWanted(name="a") != object()
    assert len({value, MetadataRequest(topics=(TopicWanted(name="a"),))}) == 1
    assert dataclasses.replace(value, topics=None) == MetadataRequest(topics=None)
    assert repr(TopicWanted(name="a")) == f"TopicWanted(topic_id={bytes(16)!r}, name='a')"


def test_a_plain_int_annotation_is_rejected() -> None:
    @struct
    class Loose:
        number: int

    with pytest.raises(TypeError, match=r"Loose\.number: .*int.* has no encoding; for integers use Int8"):
        fields_of(Loose)


def test_none_in_the_annotation_and_nullable_go_together() -> None:
    @struct
    class Forgot:
        text: str | None = wire(default=None)

    @struct
    class Overdid:
        text: str = wire(nullable="0+")

    for cls in (Forgot, Overdid):
        with pytest.raises(TypeError, match=r"text: the annotation and nullable= disagree"):
            fields_of(cls)


def test_a_field_that_may_be_missing_needs_a_default() -> None:
    @struct
    class Late:
        number: Int32 = wire(since=3)

    @struct
    class Tagged:
        number: Int32 = wire(tag=0)

    for cls in (Late, Tagged):
        with pytest.raises(TypeError, match="needs a default"):
            fields_of(cls)


def test_only_declared_messages_are_encoded() -> None:
    with pytest.raises(TypeError, match="TopicWanted is not declared"):
        encode(TopicWanted(name="a"), 1)
