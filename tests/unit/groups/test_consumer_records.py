"""The records of consumer groups (KIP-848) byte by byte, as Kafka writes them: keys are plain, values are flexible."""

from dataclasses import replace

import pytest

from tailrace.groups.consumer import records as kept
from tailrace.groups.records import Entry, Key, Value, decode_entry, encode_entry
from tailrace.model.ids import Id
from tailrace.records.record import Record

TOPIC = b"T" * 16
GROUP_PART, MEMBER_PART = b"\0\1g", b"\0\2m1"
stored = kept.StoredPartitions(topic_id=Id(TOPIC), partitions=(0, 3))
STORED_BYTES = TOPIC + b"\3" + b"\0\0\0\0" + b"\0\0\0\3" + b"\0"
profile = kept.ConsumerGroupMemberMetadataValue(
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
classic = kept.ClassicMemberMetadata(
    session_timeout_ms=8, supported_protocols=(kept.ClassicProtocol(name="r", metadata=b"s"),)
)
# One tagged field, number 0, and behind its size: not null, the timeout, one protocol; then no tags of its own.
CLASSIC_BYTES = b"\1\0\x0c" + b"\1" + b"\0\0\0\x08" + b"\2" + b"\2r" + b"\2s" + b"\0" + b"\0"


@pytest.mark.parametrize(
    ("key", "value", "key_bytes", "value_bytes"),
    [
        (
            kept.ConsumerGroupMetadataKey(group="g"),
            kept.ConsumerGroupMetadataValue(epoch=7),
            b"\0\3" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\0",
        ),
        (
            kept.ConsumerGroupMetadataKey(group="g"),
            kept.ConsumerGroupMetadataValue(epoch=7, metadata_hash=1),
            b"\0\3" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\1\0\x08" + bytes(7) + b"\1",
        ),
        (
            kept.ConsumerGroupMemberMetadataKey(group="g", member_id="m1"),
            profile,
            b"\0\5" + GROUP_PART + MEMBER_PART,
            PROFILE_BYTES + b"\0",
        ),
        (
            kept.ConsumerGroupTargetAssignmentMetadataKey(group="g"),
            kept.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=7),
            b"\0\6" + GROUP_PART,
            b"\0\0" + b"\0\0\0\7" + b"\0",
        ),
        (
            kept.ConsumerGroupTargetAssignmentMemberKey(group="g", member_id="m1"),
            kept.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(stored,)),
            b"\0\7" + GROUP_PART + MEMBER_PART,
            b"\0\0" + b"\2" + STORED_BYTES + b"\0",
        ),
        (
            kept.ConsumerGroupCurrentMemberAssignmentKey(group="g", member_id="m1"),
            kept.ConsumerGroupCurrentMemberAssignmentValue(
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
            kept.ConsumerGroupRegularExpressionKey(group="g", regular_expression="t.*"),
            kept.ConsumerGroupRegularExpressionValue(topics=("t",), version=2, timestamp=256),
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


def test_a_member_of_the_classic_protocol_carries_what_it_said() -> None:
    value = replace(profile, classic_member_metadata=classic)
    key = kept.ConsumerGroupMemberMetadataKey(group="g", member_id="m1")
    assert encode_entry(Entry(key, value), 1, 0).value == PROFILE_BYTES + CLASSIC_BYTES


def test_what_older_releases_wrote_is_read_and_means_nothing_here() -> None:
    value = b"\0\0" + b"\2" + TOPIC + b"\2t" + b"\0\0\0\4" + b"\1" + b"\0" + b"\0"
    entry = decode_entry(Record(0, 0, b"\0\4" + GROUP_PART, value))
    assert isinstance(entry.value, kept.ConsumerGroupPartitionMetadataValue)
    assert [one.num_partitions for one in entry.value.topics] == [4]
