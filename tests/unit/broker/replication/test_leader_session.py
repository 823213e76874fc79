"""Leader sessions: how a leader notices that a follower is silent."""

from dataclasses import replace
from functools import partial

from tailrace.testing.simulation import Delay
from tests.unit.broker.simulated import KIND_ODDS, Brokers, simulated

slow_disk = replace(KIND_ODDS, cold_chance=1.0, read=Delay(low_seconds=1.2, high_seconds=1.2))


@simulated()
async def test_silence_is_noticed_after_a_fetch_that_had_to_wait_for_the_disk(brokers: Brokers) -> None:
    """Such a fetch counts from when it was processed, which may be long after it arrived."""
    for name in ("t", "cold"):
        await brokers.make_topic(name, (1, 2, 3))
    leader = brokers.replica(1, "t")
    brokers.machine(3).pause()
    await brokers.elapse(2.5)
    assert leader.leads  # with broker 2
    brokers.machine(1).storage.odds = slow_disk
    brokers.append(1, "cold")
    await brokers.elapse(0.01)
    follower = brokers.replica(2, "t").member
    brokers.within(2, partial(brokers[2].quorums._fetching[follower].ask_again, follower))
    await brokers.elapse(0.01)
    brokers.machine(2).pause()
    await brokers.until(lambda: not leader.leads, within_seconds=6.0)
