"""Asking the controller: who has stopped answering is not waited for once another has taken its place."""

from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds, TakeProducerIdsAnswer
from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_a_controller_that_stands_still_is_not_waited_for_when_there_is_another(brokers: Brokers) -> None:
    assert brokers[1].is_controller
    brokers.machine(1).pause()
    asked_at = brokers.world.loop.time()
    request = TakeProducerIds(broker_id=2)
    answer = await brokers.machine(2).run(brokers[2].calls.controller(request))
    assert isinstance(answer, TakeProducerIdsAnswer)
    assert brokers.world.loop.time() - asked_at < 6.0
