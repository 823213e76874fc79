"""Calls to the controller: a call to a paused controller is given up once another broker became the controller."""

import pytest

from tailrace.model.faults import NotLeader
from tailrace.raft.leading import has_quorum
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds, TakeProducerIdsAnswer
from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_a_paused_controller_is_not_waited_for_when_there_is_another(brokers: Brokers) -> None:
    assert brokers[1].is_controller
    brokers.machine(1).pause()
    asked_at = brokers.world.loop.time()
    request = TakeProducerIds(broker_id=2)
    answer = await brokers.machine(2).run(brokers[2].control.calls.ask(request))
    assert isinstance(answer, TakeProducerIdsAnswer)
    assert brokers.world.loop.time() - asked_at < 6.0


@simulated()
async def test_a_controller_whose_followers_were_reset_does_not_answer(brokers: Brokers) -> None:
    """They may have elected another controller: that they fetched a moment ago is not enough."""
    metadata, controller = brokers[1].metadata, brokers[1].control.role.active
    await brokers.until(lambda: len(metadata.replica.voters) == 3 and metadata.high_watermark == metadata.log.end)
    assert metadata.hears_quorum()
    for one in (2, 3):
        brokers.kill(one)
    await brokers.until(lambda: not metadata.member.sessions)
    assert has_quorum(metadata.replica, brokers[1].ports.clock.monotonic())
    with pytest.raises(NotLeader, match="majority"):
        await brokers.machine(1).run(controller.settled())
