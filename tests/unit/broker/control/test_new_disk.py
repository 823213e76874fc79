"""A broker that comes back with another disk: nobody to the quorums, until it has caught up and is added."""

import pytest

from tests.unit.broker.simulated import Brokers, simulated


@pytest.mark.parametrize("replicas", [(3, 1, 2), (1, 2, 3)])
@simulated(broker_session_timeout_ms=6000)
async def test_it_takes_the_place_of_the_old_one(brokers: Brokers, replicas: tuple[int, ...]) -> None:
    """Machine 4 is given the number of broker 3, whose own is gone for good."""
    await brokers.make_topic("t", replicas)
    leader = replicas[0]
    for _ in range(3):
        brokers.append(leader, "t")
    await brokers.elapse(1.0)
    brokers.kill(3)
    await brokers.until(lambda: 3 not in brokers[1].hosted.image.live)
    await brokers.start(4, broker_id=3)
    node = brokers[4]
    await brokers.until(lambda: bool(node.hosted.of_topic("t")))
    replica = brokers.replica(4, "t")
    await brokers.until(lambda: replica.log.end >= 3, within_seconds=30.0)
    await brokers.until(lambda: replica.me in replica.replica.voters and len(replica.replica.voters) == 3)
    await brokers.until(lambda: node.voter in node.metadata.replica.voters)
    assert not node.background.failed.done()
