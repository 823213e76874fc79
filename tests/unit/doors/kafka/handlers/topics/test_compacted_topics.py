"""Topics with cleanup.policy=compact: their records need keys."""

import tracemalloc
from typing import Final

from tailrace.log.admission import check_records
from tailrace.model.limits import MiB
from tailrace.records.build import build_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionProduced, PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.handlers.configs.test_configs import ASSIGN, TOPIC_KIND, change
from tests.unit.doors.kafka.served import Served, with_broker

KEY_NAME: Final = "cleanup.policy"


async def produced(served: Served, topic: str, *keys: bytes | None) -> PartitionProduced:
    batch = build_batch([NewRecord(value=b"v", key=key) for key in keys], compression="lz4")
    data = TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=0, records=bytes(batch)),))
    answer = await served.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(data,)), 9)
    appended: PartitionProduced = answer.topics[0].partitions[0]
    return appended


async def produce(served: Served, topic: str, *keys: bytes | None) -> tuple[Error, str]:
    appended = await produced(served, topic, *keys)
    return Error(appended.error_code), appended.error_message or ""


@with_broker()
async def test_every_record_of_a_compacted_topic_needs_a_key(served: Served) -> None:
    for name, policy in (("c", "compact"), ("b", "delete, compact")):
        await served.make_topic(name, cleanup_policy=policy)
        error, said = await produce(served, name, b"k", None)
        assert error is Error.INVALID_RECORD
        assert "cannot accept message without key" in said
        assert served.node.hosted.find(name, 0).log.end == 0
        assert await produce(served, name, b"k", b"") == (Error.NONE, "")
    await served.make_topic("d")
    assert await produce(served, "d", None) == (Error.NONE, "")
    await change(served, TOPIC_KIND, "d", (KEY_NAME, ASSIGN, "compact"))
    assert (await produce(served, "d", None))[0] is Error.INVALID_RECORD


@with_broker()
async def test_a_refusal_has_the_index_of_each_record_without_a_key(served: Served) -> None:
    await served.make_topic("c", cleanup_policy="compact")
    refused = await produced(served, "c", b"k", None, b"", None)
    assert [one.batch_index for one in refused.record_errors] == [1, 3]
    assert "first record 1" in (refused.error_message or "")


@with_broker()
async def test_a_record_with_very_many_headers_costs_no_more_than_another(served: Served) -> None:
    """Headers are not decoded: that would block the event loop for seconds, and take much memory."""
    await served.make_topic("c", cleanup_policy="compact")
    many = NewRecord(value=b"v", key=b"k", headers=(("", b""),) * 300_000)
    batch = memoryview(build_batch([many], compression="zstd"))
    log = served.node.hosted.find("c", 0).log
    tracemalloc.start()
    try:
        check_records(log.settings, batch, read_header(batch), now_ms=0)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 2 * MiB
