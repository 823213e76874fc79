"""Starting a broker: data directories that it refuses, and what it logs after an unclean shutdown."""

import asyncio
import logging
from pathlib import Path

import pytest

from tailrace.broker.node import CannotStart
from tailrace.broker.starting import start_broker
from tailrace.model.settings import Settings
from tailrace.ports import system_ports


def start_and_stop(folder: Path, **settings: int) -> None:
    async def life() -> None:
        node = await start_broker(system_ports(), Settings(data_dir=str(folder), kafka_port=0, **settings))  # type: ignore[arg-type]
        await node.stop()

    asyncio.run(life())


def test_logs_without_their_identity_are_not_taken_over(tmp_path: Path) -> None:
    start_and_stop(tmp_path)
    (tmp_path / "meta.properties").unlink()
    with pytest.raises(CannotStart, match=r"meta\.properties is missing"):
        start_and_stop(tmp_path)


def test_a_refused_start_lets_go_of_the_directory(tmp_path: Path) -> None:
    start_and_stop(tmp_path, broker_id=3)
    with pytest.raises(CannotStart, match="belongs to broker 3"):
        start_and_stop(tmp_path, broker_id=4)
    start_and_stop(tmp_path)


def test_an_unclean_stop_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    start_and_stop(tmp_path)
    assert "not clean" not in caplog.text
    (tmp_path / "clean-shutdown").unlink()
    start_and_stop(tmp_path)
    assert "not clean" in caplog.text
