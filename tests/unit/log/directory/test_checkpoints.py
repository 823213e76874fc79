"""The checkpoint file: loaded as stored, and an unreadable one is not taken for a missing one."""

import logging
from pathlib import Path

import pytest

from tailrace.log.directory.checkpoints import Checkpoint, load_checkpoints, store_checkpoints
from tailrace.log.log import RecoveryPoint
from tailrace.model.ids import Id, TopicPartition
from tailrace.ports import system_ports
from tests.unit.log.logs import names, on_loop

topic_id = Id(bytes(range(16)))


@on_loop
async def test_checkpoints_are_loaded_as_stored(tmp_path: Path) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    assert load_checkpoints(disk, folder) == {}
    points = {
        TopicPartition(topic_id, number): Checkpoint(
            recovery=RecoveryPoint(offset=number * 10, start=number), high_watermark=number * 9
        )
        for number in range(3)
    }
    await store_checkpoints(disk, folder, points)
    assert load_checkpoints(disk, folder) == points
    assert names(tmp_path) == ["checkpoint"]


@on_loop
async def test_a_broken_checkpoint_is_not_taken_for_a_missing_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk, folder = system_ports().disk, str(tmp_path)
    point = Checkpoint(recovery=RecoveryPoint(offset=5), high_watermark=5)
    await store_checkpoints(disk, folder, {TopicPartition(topic_id, 0): point})
    path = tmp_path / "checkpoint"
    path.write_bytes(path.read_bytes().replace(b" 5 ", b" 6 "))
    with caplog.at_level(logging.WARNING):
        assert load_checkpoints(disk, folder) is None
    assert "all logs are scanned" in caplog.text
