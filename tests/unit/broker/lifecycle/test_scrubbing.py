"""Damage that nobody reads is found by the scrub; a replica is repaired while its broker runs."""

from functools import partial
from typing import Any

import pytest

from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.opened import batches
from tests.unit.broker.simulated import Brokers, simulated

COUNT = 12
FAST: dict[str, Any] = {"log_scrub_interval_ms": 1000, "log_segment_bytes": 1024, "log_checkpoint_interval_ms": 500}
ALL = (1, 2, 3)


async def filled(brokers: Brokers, replicas: tuple[int, ...]) -> None:
    """Twelve batches of one record, in several segments, on every replica."""
    await brokers.make_topic("t", replicas)
    for number in range(COUNT):
        end = brokers.append(replicas[0], "t", b"%0400d" % number)
    await brokers.until(lambda: all(brokers.replica(one, "t").high_watermark == end for one in replicas))


def flip_bit(brokers: Brokers, broker: int) -> str:
    """In the first record of a closed segment; the file."""
    log = brokers.replica(broker, "t").log
    assert len(log.segments) > 2
    path = f"{log.folder}/{log.segments[1].base:020d}.log"
    brokers.machine(broker).storage.flip_bit(path, BATCH_HEADER_BYTES + 50)
    return path


def content(brokers: Brokers, broker: int) -> bytes:
    log = brokers.replica(broker, "t").log
    return b"".join(brokers.within(broker, partial(one.file.read, 0, one.size)) for one in log.segments)


def repaired(brokers: Brokers, broker: int) -> bool:
    one = brokers.replica(broker, "t")
    whole = one.log.damage is None and one.log.end == one.high_watermark >= COUNT and not one.log.refilling
    return whole and one.offline is None and one.replica.may_vote and one.key not in brokers[broker].hosted.may_not_vote


@pytest.mark.parametrize("damaged", [1, 2])
@simulated(**FAST)
async def test_a_damaged_replica_is_repaired_while_its_broker_runs(
    brokers: Brokers, damaged: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Broker 1 leads; whoever leads at the end has all records, and so has the replica that was damaged."""
    await filled(brokers, ALL)
    before = brokers.replica(damaged, "t")
    path = flip_bit(brokers, damaged)
    await brokers.until(lambda: before.log.damage is not None or before.log.refilling)
    assert not before.leads
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in ALL))
    leader = next(one for one in ALL if brokers.replica(one, "t").leads)
    assert leader != damaged
    brokers.append(leader, "t", b"after")
    await brokers.until(lambda: repaired(brokers, damaged))
    assert brokers.replica(damaged, "t") is before
    await brokers.until(lambda: len({content(brokers, one) for one in ALL}) == 1)
    assert sum(header.records for _, header in batches(memoryview(content(brokers, damaged)))) > COUNT
    assert f"the scrub found damage: {path} at byte 0" in caplog.text
    assert f"{before.log.folder}/aside" not in str(brokers.machine(damaged).storage.tree.files())


@simulated(**FAST)
async def test_a_leader_hands_over_before_it_declares_the_damage(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(brokers, ALL)
    flip_bit(brokers, 1)
    leader = brokers.replica(1, "t")
    await brokers.until(lambda: not leader.leads)
    assert leader.log.damage is None
    assert leader.offline is None
    await brokers.until(lambda: repaired(brokers, 1))


@simulated(**FAST)
async def test_a_replica_without_a_leader_keeps_its_log(brokers: Brokers) -> None:
    """And it does not vote: with the other replicas gone it is the only one, and damaged."""
    await filled(brokers, ALL)
    one = brokers.replica(3, "t")
    brokers.kill(1)
    brokers.kill(2)
    before = content(brokers, 3)
    flip_bit(brokers, 3)
    await brokers.until(lambda: not one.replica.may_vote)
    await brokers.elapse(10)
    assert one.log.damage is not None
    assert len(content(brokers, 3)) == len(before)
    assert not one.leads
    await brokers.start(1, serves=False)
    await brokers.start(2, serves=False)
    await brokers.until(lambda: any(brokers.replica(two, "t").leads for two in (1, 2)))
    leader = next(two for two in (1, 2) if brokers.replica(two, "t").leads)
    brokers.append(leader, "t")
    await brokers.until(lambda: repaired(brokers, 3))


@simulated(**FAST)
async def test_sound_bytes_stay_aside_until_the_replica_is_whole(brokers: Brokers) -> None:
    await filled(brokers, ALL)
    files = brokers.machine(2).storage.tree.files
    flip_bit(brokers, 2)
    await brokers.until(lambda: sum("/aside/" in path and path.endswith(".log") for path, _ in files()) > 2)
    brokers.kill(2)
    await brokers.start(2)
    await brokers.until(lambda: brokers.replica(2, "t").replica.may_vote and not brokers.replica(2, "t").log.refilling)
    await brokers.until(lambda: len({content(brokers, other) for other in ALL}) == 1)


@simulated(count=1, **FAST)
async def test_the_only_replica_serves_what_lies_below_the_damage(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    await filled(brokers, (1,))
    one = brokers.replica(1, "t")
    path = flip_bit(brokers, 1)
    await brokers.until(lambda: one.log.damage is not None)
    bad = one.log.segments[1].base
    assert f"log damaged, appends to it are refused: {path} at byte 0, offset {bad}" in caplog.text
    assert one.leads
    read = await brokers.machine(1).run(one.read_cold(0, 100_000))
    assert read.next_offset == bad
    await brokers.elapse(5)
    assert one.log.damage is not None
