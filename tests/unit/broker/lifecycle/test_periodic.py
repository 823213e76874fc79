"""Periodic work: partitions that have no leader are reported with what is known of the reason."""

import logging

import pytest

from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_a_partition_without_a_leader_is_reported_with_the_reason(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    caplog.set_level(logging.WARNING)
    await brokers.elapse(25.0)
    assert "no leader" not in caplog.text
    for other in (2, 3):
        brokers.kill(other)
    await brokers.until(lambda: "hosted here have had no leader for 10 s" in caplog.text, within_seconds=60)
    line = next(line for line in caplog.messages if "t-0 (" in line)
    assert "voters 1,2,3" in line
    assert "no answer from 2,3" in line
