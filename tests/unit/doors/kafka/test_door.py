"""A starting broker listens before it has the metadata of its cluster; until then, requests wait."""

import asyncio

from tailrace.doors.kafka.door import KafkaDoor
from tailrace.wire.messages.metadata import MetadataRequest
from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_early_requests_are_answered_when_the_broker_has_its_metadata(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    brokers.kill(2)
    await brokers.start(2, serves=False)
    door = KafkaDoor(brokers[2])
    await brokers.machine(2).run(door.listen())
    asked = asyncio.ensure_future(brokers.call(2, MetadataRequest(topics=None), 12))
    await brokers.elapse(1.0)
    assert not asked.done()
    await brokers.machine(2).run(brokers[2].register({"kafka": door.endpoint}))
    brokers.within(2, door.open)
    answer = await asked
    assert [one.node_id for one in answer.brokers] == [1, 2, 3]
    assert [one.name for one in answer.topics] == ["t"]
