"""Replicas that restart late or with a full disk: they find the leader and end with its log."""

from tailrace.records.opened import batches
from tests.unit.broker.simulated import Brokers, simulated


@simulated(count=2)
async def test_a_broker_that_knows_only_a_former_voter_finds_the_leader(brokers: Brokers) -> None:
    brokers.kill(2)  # while broker 1 is the only voter, and none that died may join it
    await brokers.start(3)
    await brokers.start(4)
    await brokers.until(lambda: len(brokers[4].metadata.replica.voters) == 3)
    await brokers.stop(1)
    await brokers.until(lambda: any(brokers[one].is_controller for one in (3, 4)))
    await brokers.start(1)
    assert not brokers[1].is_controller
    await brokers.start(2)
    metadata = brokers[2].metadata
    await brokers.until(lambda: metadata.leader in (3, 4) and len(metadata.replica.voters) == 3)


@simulated(log_checkpoint_interval_ms=500)
async def test_a_log_that_cannot_be_cut_for_want_of_room_is_cut_later(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    end = brokers.append(1, "t")
    old = brokers.replica(1, "t")
    await brokers.until(lambda: old.high_watermark == end)
    brokers.world.network.isolate("b1")
    for _ in range(5):
        brokers.append(1, "t")
    await brokers.until(lambda: old.log.recovery_point is not None and old.log.recovery_point.offset == old.log.end)
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in (2, 3)))
    brokers.machine(1).storage.fill(10_000, new_names=False)  # a vote can be stored, the mark of a cut cannot
    brokers.world.network.heal()
    await brokers.elapse(5.0)
    assert old.offline is None
    assert old.log.end > end
    brokers.machine(1).storage.make_room()
    leader = next(brokers.replica(one, "t") for one in (2, 3) if brokers.replica(one, "t").leads)
    await brokers.until(lambda: old.log.end == old.high_watermark == leader.log.end)


@simulated(log_checkpoint_interval_ms=500)
async def test_a_log_that_cannot_begin_where_its_leaders_does_for_want_of_room_does_so_later(brokers: Brokers) -> None:
    """Meanwhile the log stays unchanged: records appended behind an unrecorded gap would be lost in a crash."""
    await brokers.make_topic("t", (1, 2, 3))
    end = brokers.append(1, "t")
    await brokers.until(lambda: brokers.replica(3, "t").high_watermark == end)
    brokers.world.network.isolate("b3")
    brokers.world.network.reset("b1", "b3")  # what the leader sends to it now would arrive later
    sessions = brokers.replica(1, "t").member.sessions
    await brokers.until(lambda: [session.broker for session in sessions] == [2])
    for _ in range(5):
        later = brokers.append(1, "t")
    await brokers.until(lambda: brokers.replica(2, "t").high_watermark == later)
    for one in (1, 2):
        await brokers.replica(one, "t").log.advance_start(later)
    brokers.machine(3).storage.fill(10_000, new_names=False)
    brokers.world.network.heal()
    await brokers.elapse(5.0)
    late = brokers.replica(3, "t")
    assert (late.offline, late.log.start, late.log.end) == (None, 0, end)
    brokers.machine(3).storage.make_room()
    await brokers.until(lambda: (late.log.start, late.log.end) == (later, brokers.replica(1, "t").log.end))
    last = brokers.append(1, "t")
    await brokers.until(lambda: late.log.durable == last)
    brokers.kill(3)
    await brokers.start(3)
    again = brokers.replica(3, "t")
    assert (again.log.start, again.log.end) == (later, last)


@simulated()
async def test_a_log_that_ends_below_a_log_start_within_a_batch_goes_on_with_that_batch(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    end = brokers.append(1, "t")
    await brokers.until(lambda: brokers.replica(3, "t").high_watermark == end)
    brokers.kill(3)
    before = brokers.append(1, "t")
    later = brokers.append(1, "t", b"a", b"b", b"c")
    await brokers.until(lambda: brokers.replica(2, "t").high_watermark == later)
    for one in (1, 2):
        await brokers.replica(one, "t").log.advance_start(before + 1)
    await brokers.start(3)
    await brokers.until(lambda: brokers.replica(3, "t").log.end == brokers.replica(1, "t").log.end)
    last = brokers.append(1, "t")
    late = brokers.replica(3, "t")
    await brokers.until(lambda: late.high_watermark == last)
    assert late.log.start in (before, before + 1)
    found = await late.log.read_cold(before + 1, 1000, last)
    assert [header.base_offset for _, header in batches(memoryview(found.data))] == [before, later]
