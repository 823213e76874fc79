"""A broker that compacts a topic: lost worker processes and unreadable batches cost no record and stop nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from crc32c import crc32c

from tailrace.records.build import build_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce
from tests.simulation.stage import Stage, staged

SMALL: dict[str, Any] = {"segment_bytes": 1024, "min_cleanable_dirty_ratio": 0.01, "delete_retention_ms": 100}
FEW = 12  # records: of six keys
ZSTD = 4  # in a batch's attributes
RECORDS_AT = 61


async def started(stage: Stage, policy: str = "compact") -> None:
    await stage.start(log_checkpoint_interval_ms=200, log_cleaner_backoff_ms=100)
    await stage.make_topic("table", **SMALL, cleanup_policy=policy)


async def put(stage: Stage, *records: tuple[str, str | None]) -> None:
    made = [NewRecord(key=key.encode(), value=None if value is None else value.encode()) for key, value in records]
    await send(stage, build_batch(made))


async def send(stage: Stage, batch: bytearray) -> None:
    part = PartitionToProduce(partition=0, records=bytes(batch))
    request = ProduceRequest(acks=-1, timeout_ms=15_000, topics=(TopicToProduce(name="table", partitions=(part,)),))
    assert (await stage.call(request, 9)).topics[0].partitions[0].error_code == 0


async def filled(stage: Stage) -> None:
    for number in range(60):
        await put(stage, (f"key {number % 5}", f"value {number}"), ("gone", None))


def kept(stage: Stage) -> int:
    """How many records are below the newest segment."""
    files = stage.files(stage.folder("table"))
    closed = stage.segments("table")[:-1]
    return sum(header.records for path in closed for _, header in batches(files[path]))


def lose_workers(stage: Stage, chance: float) -> None:
    setattr(stage.node.ports.offload, "_odds", replace(stage.world.odds, worker_lost_chance=chance))  # noqa: B010


async def table(stage: Stage) -> dict[bytes | None, bytes | None]:
    found: dict[bytes | None, bytes | None] = {}
    offset = 0
    while records := (await stage.fetch("table", offset)).records:
        for batch, header in batches(records):
            found.update((record.key, record.value) for record in open_batch(batch))
            offset = header.last_offset + 1
    return found


@staged
async def test_a_pass_is_taken_up_again_after_its_worker_process_was_lost(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await started(stage)
    lose_workers(stage, 1.0)
    await filled(stage)
    await stage.world.until(lambda: "the worker process was lost" in caplog.text)
    assert kept(stage) > FEW
    lose_workers(stage, 0.0)
    await stage.world.until(lambda: kept(stage) <= FEW)
    assert not stage.failed


@staged
async def test_a_full_disk_leaves_the_old_segments_until_there_is_room(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await started(stage)
    lose_workers(stage, 1.0)
    await filled(stage)
    before = await table(stage)
    stage.storage.fill(200)
    lose_workers(stage, 0.0)
    await stage.world.until(lambda: "table-0: compaction failed, the old segments stay" in caplog.text)
    await stage.world.until(lambda: "No space left" in caplog.text)
    assert kept(stage) > FEW
    stage.storage.make_room()
    await stage.world.until(lambda: kept(stage) <= FEW)
    after = await table(stage)
    assert {key: value for key, value in after.items() if value} == {key: one for key, one in before.items() if one}
    assert not stage.failed


@staged
async def test_tombstones_go_when_their_time_is_over(stage: Stage) -> None:
    await started(stage)
    await filled(stage)
    assert b"gone" in await table(stage)
    for number in range(60):  # so that all of the first ones are in closed segments, and compacted again
        await put(stage, ("other", str(number)))
        await asyncio.sleep(0.05)
    await stage.world.until(lambda: stage.node.hosted.find("table", 0).log.horizon > 120)
    await filled_with_others(stage)
    found = await table(stage)
    assert b"gone" not in found
    assert [found[f"key {number}".encode()] for number in range(5)] == [
        f"value {55 + number}".encode() for number in range(5)
    ]


async def filled_with_others(stage: Stage) -> None:
    for number in range(60):
        await put(stage, ("other", str(number)))
    await stage.world.until(lambda: kept(stage) <= FEW)


def undecompressable() -> bytearray:
    batch = build_batch([NewRecord(key=b"k", value=b"not compressed")])
    batch[22] = ZSTD
    return batch


def unparsable() -> bytearray:
    batch = build_batch([NewRecord(key=b"k", value=b"longer than the record says")])
    batch[RECORDS_AT] -= 2  # of the record's length
    return batch


@pytest.mark.parametrize(
    ("made", "reason"), [(undecompressable, "zstd"), (unparsable, "record")], ids=["undecompressable", "unparsable"]
)
@staged
async def test_a_batch_that_cannot_be_read_stays_and_is_named(
    stage: Stage, caplog: pytest.LogCaptureFixture, made: Callable[[], bytearray], reason: str
) -> None:
    await started(stage, "delete")
    await filled(stage)
    batch = made()
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4)
    await send(stage, batch)
    await filled(stage)
    change = ConfigChange(name="cleanup.policy", config_operation=0, value="compact")
    resource = ResourceToAlter(resource_type=2, resource_name="table", configs=(change,))
    await stage.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    await stage.world.until(lambda: kept(stage) <= 2 * FEW)
    name = "the batch at offset 120 cannot be compacted and stays as it is: "
    assert name in caplog.text
    assert reason in caplog.text.split(name)[1].splitlines()[0]
    assert bytes(batch[17:]) in b"".join(data for path, data in stage.files().items() if path.endswith(".log"))
