"""The records of share groups (KIP-932), byte by byte as Kafka writes them: only values are flexible."""

from typing import get_args

import pytest

from tailrace.groups.consumer.records import StoredPartitions
from tailrace.groups.share import records
from tailrace.groups.share.records import ShareKey, ShareValue
from tailrace.model.ids import Id
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.schema import declaration

TOPIC = b"T" * 16
GROUP_PART, MEMBER_PART = b"\0\1g", b"\0\2m1"
TWO_PARTITIONS = b"\3" + b"\0\0\0\0" + b"\0\0\0\3"
stored = StoredPartitions(topic_id=Id(TOPIC), partitions=(0, 3))
STORED_BYTES = TOPIC + TWO_PARTITIONS + b"\0"


@pytest.mark.parametrize(
    ("key", "value", "key_type", "key_bytes", "value_bytes"),
    [
        (
            records.ShareGroupMemberMetadataKey(group="g", member_id="m1"),
            records.ShareGroupMemberMetadataValue(
                rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t",)
            ),
            10,
            GROUP_PART + MEMBER_PART,
            b"\0" + b"\2c" + b"\3/h" + b"\2\2t" + b"\0",
        ),
        (
            records.ShareGroupMetadataKey(group="g"),
            records.ShareGroupMetadataValue(epoch=7, metadata_hash=1),
            11,
            GROUP_PART,
            b"\0\0\0\7" + bytes(7) + b"\1" + b"\0",
        ),
        (
            records.ShareGroupTargetAssignmentMetadataKey(group="g"),
            records.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=7),
            12,
            GROUP_PART,
            b"\0\0\0\7" + b"\0",
        ),
        (
            records.ShareGroupTargetAssignmentMetadataKey(group="g"),
            records.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=7, assignment_timestamp=256),
            12,
            GROUP_PART,
            b"\0\0\0\7" + b"\1\0\x08" + bytes(6) + b"\1\0",
        ),
        (
            records.ShareGroupTargetAssignmentMemberKey(group="g", member_id="m1"),
            records.ShareGroupTargetAssignmentMemberValue(topic_partitions=(stored,)),
            13,
            GROUP_PART + MEMBER_PART,
            b"\2" + STORED_BYTES + b"\0",
        ),
        (
            records.ShareGroupCurrentMemberAssignmentKey(group="g", member_id="m1"),
            records.ShareGroupCurrentMemberAssignmentValue(
                member_epoch=7, previous_member_epoch=6, state=0, assigned_partitions=(stored,)
            ),
            14,
            GROUP_PART + MEMBER_PART,
            b"\0\0\0\7" + b"\0\0\0\6" + b"\0" + b"\2" + STORED_BYTES + b"\0",
        ),
        (
            records.ShareGroupStatePartitionMetadataKey(group="g"),
            records.ShareGroupStatePartitionMetadataValue(
                initializing_topics=(),
                initialized_topics=(records.TopicWithState(topic_id=Id(TOPIC), topic_name="t", partitions=(0, 3)),),
                deleting_topics=(records.TopicToDelete(topic_id=Id(TOPIC), topic_name="u"),),
            ),
            15,
            GROUP_PART,
            b"\1" + b"\2" + TOPIC + b"\2t" + TWO_PARTITIONS + b"\0" + b"\2" + TOPIC + b"\2u" + b"\0" + b"\0",
        ),
        (
            records.ShareGroupStatePartitionMetadataKey(group="g"),
            records.ShareGroupStatePartitionMetadataValue(
                initializing_topics=(
                    records.TopicWithState(topic_id=Id(TOPIC), topic_name="t", partitions=(0, 3), start_offset=5),
                ),
                initialized_topics=(),
                deleting_topics=(),
            ),
            15,
            GROUP_PART,
            # The tag 10000 is two bytes as a varint; its field has eight.
            b"\2" + TOPIC + b"\2t" + TWO_PARTITIONS + b"\1\x90\x4e\x08" + bytes(7) + b"\5" + b"\1" + b"\1" + b"\0",
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_bytes_and_back(key: ShareKey, value: ShareValue, key_type: int, key_bytes: bytes, value_bytes: bytes) -> None:
    key_class: type[ShareKey] = type(key)
    value_class: type[ShareValue] = type(value)
    assert declaration(key_class).number == declaration(value_class).number == key_type
    assert (encode(key, key_type), encode(value, 0)) == (key_bytes, value_bytes)
    assert decode_whole(key_class, key_type, key_bytes) == key
    assert decode_whole(value_class, 0, value_bytes) == value


def test_keys_and_values_are_listed_in_the_same_order() -> None:
    keys = [(declaration(one).number, one.__name__.removesuffix("Key")) for one in get_args(ShareKey)]
    values = [(declaration(one).number, one.__name__.removesuffix("Value")) for one in get_args(ShareValue)]
    assert keys == values
    assert [number for number, _ in keys] == [10, 11, 12, 13, 14, 15]
