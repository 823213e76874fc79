"""`tailrace.client.topics` at a broker that lags behind the controller: a topic that was created is there."""

from tailrace.client.topics import partitions_of
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.client.simulated_client import SimulatedClient


@simulated()
async def test_a_topic_that_another_broker_created_is_there(brokers: Brokers) -> None:
    found = SimulatedClient(brokers.world, "b3")  # which is asked first
    await found.run(found.cluster.refresh())
    brokers.world.network.cut("b1", "b3")  # the controller's changes reach broker 3 no more
    await brokers.make_topic("t", (1,))
    assert await found.run(partitions_of(found.cluster, "t")) == 1
    assert await found.run(partitions_of(found.cluster, "none")) is None
    assert "t" not in brokers[3].hosted.image.topics
