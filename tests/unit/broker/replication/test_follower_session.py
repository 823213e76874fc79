"""Follower sessions: no answer of a leader is lost, in whatever order requests and answers overtake each other; and
when the next request is sent."""

from dataclasses import replace
from functools import partial

from tailrace.broker.partitions.partition import Partition
from tailrace.broker.replication.follower_session import SYNC_AWAITED_MAX_BYTES, SYNC_WAIT_MAX_S
from tailrace.testing.simulation import Delay
from tests.unit.broker.simulated import KIND_ODDS, Brokers, simulated

slow_fsyncs = replace(KIND_ODDS, sync=Delay(low_seconds=0.5, high_seconds=0.5))
uneven = replace(KIND_ODDS, link=Delay(low_seconds=0.001, high_seconds=0.01))
BURSTS = 30


def durable_there(leader: Partition, broker: int) -> int:
    """How far a follower's log is on its disk, as its leader knows."""
    return next(peer.durable for peer in leader.replica.peers() if peer.replica.broker == broker)


@simulated(odds=uneven)
async def test_a_high_watermark_is_heard_though_another_partition_was_in_a_hurry(brokers: Brokers) -> None:
    """A partition that is sent again with another's request, before an answer arrived, must not miss that answer."""
    for name in ("t", "hasty"):
        await brokers.make_topic(name, (1, 2, 3))
    leader, follower, hasty = brokers.replica(1, "t"), brokers.replica(2, "t"), brokers.replica(2, "hasty")
    fetcher = brokers[2].quorums._fetching[follower.member]
    for _ in range(BURSTS):
        for _ in range(3):
            end = brokers.append(1, "t")
            await brokers.elapse(brokers.world.random.uniform(0, 0.01))
            brokers.within(2, partial(fetcher.ask_again, hasty.member))
            await brokers.elapse(brokers.world.random.uniform(0, 0.01))
        for replica in (leader, follower):
            await brokers.until(lambda one=replica, all_of_it=end: one.high_watermark == all_of_it, within_seconds=3.0)  # type: ignore[misc]


@simulated(odds=uneven)
async def test_a_high_watermark_is_heard_though_the_partition_left_and_came_back(brokers: Brokers) -> None:
    """As when it lost an election while an answer was in flight."""
    await brokers.make_topic("t", (1, 2, 3))
    leader, follower = brokers.replica(1, "t"), brokers.replica(2, "t")
    quorums = brokers[2].quorums

    def leave_and_return() -> None:
        quorums._leave(follower.member)
        quorums.fetch_changed(follower.member)

    for _ in range(BURSTS):
        end = brokers.append(1, "t")
        await brokers.elapse(brokers.world.random.uniform(0, 0.05))
        brokers.within(2, leave_and_return)
        await brokers.until(lambda all_of_it=end: leader.high_watermark == all_of_it, within_seconds=3.0)  # type: ignore[misc]
        await brokers.until(lambda all_of_it=end: follower.high_watermark == all_of_it, within_seconds=3.0)  # type: ignore[misc]


@simulated()
async def test_records_are_committed_by_the_request_that_fetches_the_next_ones(brokers: Brokers) -> None:
    """It waits for the fsync of what the last answer brought, and reports that as durable."""
    await brokers.make_topic("t", (1, 2, 3))
    leader, follower = brokers.replica(1, "t"), brokers.replica(2, "t")
    fetcher = brokers[2].quorums._fetching[follower.member]
    before = fetcher._requests
    for _ in range(BURSTS):
        end = brokers.append(1, "t")
        await brokers.until(lambda all_of_it=end: durable_there(leader, 2) == all_of_it)  # type: ignore[misc]
        reported = fetcher.asks(follower.member)
        assert reported is not None
        assert (reported.end, reported.durable) == (end, end)  # not by a message of its own
    sent = fetcher._requests - before
    assert BURSTS <= sent < 1.5 * BURSTS  # one for each append, and some after answers with only a high watermark


@simulated()
async def test_a_slow_fsync_delays_other_partitions_for_a_few_milliseconds_only(brokers: Brokers) -> None:
    for name in ("slow", "t"):
        await brokers.make_topic(name, (1, 2, 3))
    brokers.machine(2).storage.odds = slow_fsyncs
    end = brokers.append(1, "slow")
    await brokers.until(lambda: brokers.replica(2, "slow").log.end == end)
    end = brokers.append(1, "t")
    await brokers.until(lambda: brokers.replica(2, "t").log.end == end, within_seconds=2 * SYNC_WAIT_MAX_S)
    assert brokers.replica(2, "slow").log.durable < brokers.replica(2, "slow").log.end


@simulated()
async def test_after_many_records_the_next_are_fetched_during_the_fsync(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    follower = brokers.replica(2, "t")
    brokers.machine(2).storage.odds = slow_fsyncs
    for _ in range(3):
        end = brokers.append(1, "t", bytes(2 * SYNC_AWAITED_MAX_BYTES))
        await brokers.until(lambda all_of_it=end: follower.log.end == all_of_it, within_seconds=SYNC_WAIT_MAX_S)  # type: ignore[misc]
    assert follower.log.durable < follower.log.end
