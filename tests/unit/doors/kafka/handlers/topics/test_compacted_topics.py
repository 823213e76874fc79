"""Topics with cleanup.policy=compact: the warning when one is created, and that their records need keys."""

import asyncio
import tracemalloc
from pathlib import Path
from typing import Final

import pytest

from tailrace.log.admission import check_records
from tailrace.model.limits import MiB
from tailrace.records.build import build_batch
from tailrace.records.header import read_header
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.unit.doors.kafka.handlers.configs.test_configs import APPEND, ASSIGN, TOPIC_KIND, change, replace_all
from tests.unit.doors.kafka.served import Served, serving, with_broker

KEY_NAME: Final = "cleanup.policy"


async def produce(served: Served, topic: str, *keys: bytes | None) -> tuple[Error, str]:
    batch = build_batch([NewRecord(value=b"v", key=key) for key in keys], compression="lz4")
    data = TopicToProduce(name=topic, partitions=(PartitionToProduce(partition=0, records=bytes(batch)),))
    answer = await served.call(ProduceRequest(acks=-1, timeout_ms=5000, topics=(data,)), 9)
    appended = answer.topics[0].partitions[0]
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


def test_a_warning_says_once_per_topic_that_logs_are_not_compacted_yet(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def told() -> list[str]:
        texts = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
        caplog.clear()
        return [text.partition(",")[0] for text in texts if "cleanup.policy=compact" in text]

    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("made", cleanup_policy="compact")
            assert told() == ["topic made has cleanup.policy=compact"]
            await served.make_topic("t")
            await change(served, TOPIC_KIND, "t", (KEY_NAME, APPEND, "compact"), validate_only=True)
            assert told() == []
            await change(served, TOPIC_KIND, "t", (KEY_NAME, APPEND, "compact"))
            assert told() == ["topic t has cleanup.policy=compact"]
            await change(served, TOPIC_KIND, "t", (KEY_NAME, ASSIGN, "compact"), ("flush.ms", ASSIGN, "5"))
            assert told() == []
            await replace_all(served, TOPIC_KIND, "t")
            await replace_all(served, TOPIC_KIND, "t", (KEY_NAME, "compact,delete"))
            assert told() == ["topic t has cleanup.policy=compact"]

    asyncio.run(run())
