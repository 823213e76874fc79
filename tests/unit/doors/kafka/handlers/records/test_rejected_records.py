"""A Produce response names the records because of which a batch is rejected (KIP-467)."""

from typing import Any, Final

from tailrace.model.ids import NO_ID, Id
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.served import Served, versions, with_broker

PRODUCE: Final = 0
NO_KEY: Final = "Compacted topic cannot accept message without key"


async def produce(served: Served, name: str, topic_id: bytes, version: int, *records: NewRecord) -> Any:
    """The answer for one batch, by the topic's name or, where the version has that, by its id."""
    by_id = version >= 13
    batch = PartitionToProduce(partition=0, records=bytes(build_batch(records)))
    topic = TopicToProduce(name="" if by_id else name, topic_id=Id(topic_id) if by_id else NO_ID, partitions=(batch,))
    answer = await served.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(topic,)), version)
    return answer.topics[0].partitions[0]


def named(answer: Any) -> list[tuple[int, str]]:
    return [(one.batch_index, one.message) for one in answer.record_errors]


@with_broker()
async def test_records_without_a_key_are_named_in_every_version(served: Served) -> None:
    topic_id = await served.make_topic("c", cleanup_policy="compact")
    good, bad = NewRecord(value=b"v", key=b"k"), NewRecord(value=b"v")
    for version in versions(PRODUCE):
        for _ in range(2):  # the second request matches the template of the first
            answer = await produce(served, "c", topic_id, version, good, bad, good, bad)
            assert answer.error_code == Error.INVALID_RECORD
            assert answer.base_offset == -1
            if version >= 8:
                assert named(answer) == [(1, NO_KEY), (3, NO_KEY)], version
                assert "One or more records have been rejected" in answer.error_message
        accepted = await produce(served, "c", topic_id, version, good)
        assert (accepted.error_code, accepted.record_errors, accepted.error_message) == (0, (), None)


@with_broker()
async def test_records_with_a_wrong_timestamp_are_named(served: Served) -> None:
    early = await served.make_topic("before", message_timestamp_before_max_ms="60000")
    late = await served.make_topic("after", message_timestamp_after_max_ms="60000")
    now_ms = served.node.ports.clock.wall_ms()
    for name, topic_id, wrong_ms in (("before", early, now_ms - 3_600_000), ("after", late, now_ms + 3_600_000)):
        records = [NewRecord(value=b"v", timestamp=time) for time in (now_ms, now_ms, wrong_ms)]
        answer = await produce(served, name, topic_id, 9, *records)
        assert answer.error_code == Error.INVALID_TIMESTAMP
        ((index, reason),) = named(answer)
        assert index == 2
        assert f"timestamp {wrong_ms} is out of range: message.timestamp.{name}.max.ms" in reason


@with_broker()
async def test_a_batch_that_is_rejected_as_a_whole_names_no_record(served: Served) -> None:
    topic_id = await served.make_topic("t", max_message_bytes="10")
    answer = await produce(served, "t", topic_id, 9, NewRecord(value=bytes(100)))
    assert (answer.error_code, answer.record_errors) == (Error.MESSAGE_TOO_LARGE, ())
    assert "max.message.bytes" in answer.error_message
