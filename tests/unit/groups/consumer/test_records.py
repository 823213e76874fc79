"""The records of consumer groups (KIP-848), byte by byte as Kafka writes them: only values are flexible."""

from dataclasses import replace

import pytest

from tailrace.groups.consumer import records
from tailrace.groups.records import Entry, Key, Value, decode_entry, encode_entry
from tailrace.model.ids import Id
from tailrace.records.record import Record

TOPIC = b"T" * 16
GROUP_PART, MEMBER_PART = b"\0\1g", b"\0\2m1"
stored = records.StoredPartitions(topic_id=Id(TOPIC), partitions=(0, 3))
STORED_BYTES = TOPIC + b"\3" + b"\0\0\0\0" + b"\0\0\0\3" + b"\0"
profile = records.ConsumerGroupMemberMetadataValue(
    instance_id="i",
    rack_id=None,
    client_id="c",
    client_host="/h",
    subscribed_topic_names=("t",),
    subscribed_topic_regex=None,
    rebalance_timeout_ms=9,
    server_assignor="range",
)
PROFILE_BYTES = b"\0\0" + b"\2i" + b"\0" + b"\2c" + b"\3/h" + b"\2\2t" + b"\0" + b"\0\0\0\x09" + b"\6range"
classic = records.ClassicMemberMetadata(
    session_timeout_ms=8, supported_protocols=(records.ClassicProtocol(name="r", metadata=b"s"),)
)
# One tagged field, number 0, and its size; then: not null, the timeout, one protocol, no tagged fields.
CLASSIC_BYTES = b"\1\0\x0c" + b"\1" + b"\0\0\0\x08" + b"\2" + b"\2r" + b"\2s" + b"\0" + b"\0"


@pytest.mark.parametrize(
    ("key", "value", "key_bytes", "value_bytes"),
    [
        (
            records.ConsumerGroupMetadataKey(group="g"),
            records.ConsumerGroupMetadataValue(epoch=7),
            b"\0\3" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\0",
        ),
        (
            records.ConsumerGroupMetadataKey(group="g"),
            records.ConsumerGroupMetadataValue(epoch=7, metadata_hash=1),
            b"\0\3" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\1\0\x08" + bytes(7) + b"\1",
        ),
        (
            records.ConsumerGroupMemberMetadataKey(group="g", member_id="m1"),
            profile,
            b"\0\5" + GROUP_PART + MEMBER_PART,
            PROFILE_BYTES + b"\0",
        ),
        (
            records.ConsumerGroupTargetAssignmentMetadataKey(group="g"),
            records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=7),
            b"\0\6" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\0",
        ),
        (
            records.ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="m1"),
            records.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(stored,)),
            b"\0\7" + GROUP_PART + MEMBER_PART,
            b"\0\0" + b"\2" + STORED_BYTES + b"\0",
        ),
        (
            records.ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="m1"),
            records.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=7,
                previous_member_epoch=6,
                state=1,
                assigned_partitions=(stored,),
                partitions_pending_revocation=(),
            ),
            b"\0\x08" + GROUP_PART + MEMBER_PART,
            b"\0\0" + b"\0\0\0\7" + b"\0\0\0\6" + b"\1" + b"\2" + STORED_BYTES + b"\1" + b"\0",
        ),
        (
            records.ConsumerGroupRegularExpressionKey(group="g", regular_expression="t.*"),
            records.ConsumerGroupRegularExpressionValue(topics=("t",), version=2, timestamp=256),
            b"\0\x10" + GROUP_PART + b"\0\3t.*",
            b"\0\0" + b"\2\2t" + bytes(7) + b"\2" + bytes(6) + b"\1\0" + b"\0",
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_bytes_and_back(key: Key, value: Value, key_bytes: bytes, value_bytes: bytes) -> None:
    written = encode_entry(Entry(key, value), 1, 99)
    assert (written.key, written.value) == (key_bytes, value_bytes)
    assert decode_entry(Record(0, 99, key_bytes, value_bytes)) == Entry(key, value)
    assert decode_entry(Record(0, 99, key_bytes, None)) == Entry(key, None)


def test_a_member_of_the_classic_protocol_has_its_protocols_in_a_tagged_field() -> None:
    value = replace(profile, classic_member_metadata=classic)
    key = records.ConsumerGroupMemberMetadataKey(group="g", member_id="m1")
    assert encode_entry(Entry(key, value), 1, 0).value == PROFILE_BYTES + CLASSIC_BYTES


def test_partition_metadata_of_older_kafka_releases_is_decoded() -> None:
    value = b"\0\0" + b"\2" + TOPIC + b"\2t" + b"\0\0\0\4" + b"\1" + b"\0" + b"\0"
    entry = decode_entry(Record(0, 0, b"\0\4" + GROUP_PART, value))
    assert isinstance(entry.value, records.ConsumerGroupPartitionMetadataValue)
    assert [one.num_partitions for one in entry.value.topics] == [4]
