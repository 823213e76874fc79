"""Checkpoints by appended bytes; logs that were not opened keep their recovery points."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.lifecycle.checkpointing import LEFT_OUT_SHARE
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.log.directory.meta import CLEAN_NAME
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import KiB, MiB
from tailrace.wire.errors import Error
from tests.simulation.stage import DATA_DIR, Stage, staged

NEVER_MS = 3_600_000
BIG = bytes(300 * KiB)


def recorded(stage: Stage, topic: str, partition: int = 0) -> int | None:
    """The recovery point in the checkpoint file."""
    key = stage.node.hosted.find(topic, partition).key
    checkpoints = load_checkpoints(stage.node.ports.disk, DATA_DIR) or {}
    return checkpoints[key].recovery.offset if key in checkpoints else None


@staged
async def test_a_checkpoint_is_written_once_enough_was_appended(stage: Stage) -> None:
    await stage.start(log_checkpoint_interval_ms=NEVER_MS, log_checkpoint_interval_bytes=MiB)
    await stage.make_topic("t")
    await stage.produce("t", BIG)
    assert recorded(stage, "t") is None
    for _ in range(3):
        await stage.produce("t", BIG)
    await stage.world.until(lambda: (recorded(stage, "t") or 0) >= 4)


@staged
async def test_small_batches_count_for_what_their_scan_costs(stage: Stage) -> None:
    await stage.start(log_checkpoint_interval_ms=NEVER_MS, log_checkpoint_interval_bytes=MiB)
    await stage.make_topic("t")
    for _ in range(300):
        await stage.produce("t", b"v")
    await stage.world.until(lambda: (recorded(stage, "t") or 0) > 200)


@staged
async def test_a_log_with_few_bytes_waits_for_the_next_interval(stage: Stage) -> None:
    await stage.start(log_checkpoint_interval_ms=NEVER_MS, log_checkpoint_interval_bytes=MiB)
    await stage.make_topic("t", partitions=2)
    assert MiB // LEFT_OUT_SHARE // 3 > 5 * KiB
    await stage.produce("t", b"v", partition=1)
    for _ in range(4):
        await stage.produce("t", BIG)
    await stage.world.until(lambda: (recorded(stage, "t") or 0) >= 4)
    assert recorded(stage, "t", 1) is None


@staged
async def test_after_a_crash_only_what_lies_above_the_checkpoint_is_scanned(stage: Stage) -> None:
    settings: dict[str, Any] = {"log_checkpoint_interval_ms": NEVER_MS, "log_checkpoint_interval_bytes": MiB}
    await stage.start(**settings)
    await stage.make_topic("t")
    for _ in range(10):
        await stage.produce("t", BIG)
    log = stage.node.hosted.find("t", 0).log
    await stage.world.until(lambda: log.recorded_offset >= 7)
    point = log.recorded_offset
    stage.kill()
    await stage.start(**settings)
    log = stage.node.hosted.find("t", 0).log
    assert log.recorded_offset == point
    assert await stage.read("t") == [BIG] * 10


@staged
async def test_open_partitions_are_served_while_another_is_scanned(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.start(log_checkpoint_interval_ms=100)
    await stage.make_topic("t", partitions=2)
    for partition in (0, 1):
        await stage.produce("t", b"v", partition=partition)
    await stage.world.until(lambda: recorded(stage, "t", 1) == 1)
    key = stage.node.hosted.find("t", 1).key
    stage.kill()
    with monkeypatch.context() as patch:
        patch.setattr(HostedPartitions, "open", never_opens(key))
        await stage.start(log_checkpoint_interval_ms=100)
        assert (await stage.produce("t", b"w")).error_code == 0
        assert (await stage.produce("t", b"w", partition=1)).error_code == Error.NOT_LEADER_OR_FOLLOWER
        await stage.stop()
    checkpoints = load_checkpoints(stage.broker.boot().disk, DATA_DIR) or {}
    assert checkpoints[key].recovery.offset == 1
    assert f"{DATA_DIR}/{CLEAN_NAME}" not in stage.files(), "its log was not scanned: the stop was not clean"
    stage.kill()
    await stage.start()
    assert (await stage.read("t"), await stage.read("t", partition=1)) == ([b"v", b"w"], [b"v"])


def never_opens(key: TopicPartition) -> Any:
    """`HostedPartitions.open`, but the scan of one partition does not end."""
    right = HostedPartitions.open

    async def open_partition(hosted: HostedPartitions, name: str, opened: TopicPartition, *more: Any) -> Partition:
        if opened == key:
            await asyncio.get_running_loop().create_future()
        return await right(hosted, name, opened, *more)

    return open_partition
