"""What consumers of the classic protocol say and get, byte by byte, in every version; and what cannot be read."""

from struct import pack

import pytest

from tailrace.groups.consumer.embedded import EmbeddedPartitions, assignment, assignment_of, subscription_of
from tailrace.model.faults import InconsistentProtocol
from tailrace.model.ids import TopicPartition
from tests.unit.groups.consumer_stage import StagedTopics, id_of

TOPICS_PART = pack(">i", 1) + b"\0\1t"
no_user_data = pack(">i", -1)
OWNED_PART = pack(">i", 1) + b"\0\1t" + pack(">iii", 2, 0, 3)


@pytest.mark.parametrize("version", range(5))
def test_a_subscription_is_read_in_every_version_and_newer_ones_as_the_newest(version: int) -> None:
    data = pack(">h", version) + TOPICS_PART + no_user_data
    data += OWNED_PART if version >= 1 else b""
    data += pack(">i", 7) if version >= 2 else b""
    data += b"\0\1r" if version >= 3 else b""
    data += b"more" if version >= 4 else b""
    found = subscription_of(data)
    owned = (EmbeddedPartitions(topic="t", partitions=(0, 3)),)
    assert (found.topics, found.owned_partitions) == (("t",), owned if version >= 1 else ())
    assert (found.generation_id, found.rack_id) == (7 if version >= 2 else -1, "r" if version >= 3 else None)


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", b"\0\1" + TOPICS_PART])
def test_what_is_no_subscription_is_refused(data: bytes) -> None:
    with pytest.raises(InconsistentProtocol):
        subscription_of(data)


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_written_in_the_version_of_the_subscription_and_read_again(version: int) -> None:
    topics = StagedTopics()
    topics.make("t", 4)
    share = (TopicPartition(id_of("t"), 0), TopicPartition(id_of("t"), 3))
    written = assignment((*share, TopicPartition(id_of("gone"), 1)), topics, pack(">h", version))
    assert written == pack(">h", version) + OWNED_PART + no_user_data
    assert assignment_of(written, topics) == share


def test_an_assignment_that_cannot_be_read_is_none() -> None:
    assert assignment_of(b"all", StagedTopics()) == ()
    assert assignment_of(b"", StagedTopics()) == ()
