"""Follower sessions: no answer of a leader is lost, in whatever order requests and answers overtake each other."""

from dataclasses import replace
from functools import partial

from tailrace.testing.simulation import Delay
from tests.unit.broker.simulated import KIND_ODDS, Brokers, simulated

uneven = replace(KIND_ODDS, link=Delay(low_seconds=0.001, high_seconds=0.01))
BURSTS = 30


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
