"""A state machine during a leadership term: its first write is retried until it is committed."""

from tailrace.broker.machines.leadership_term import LeadershipTerm
from tailrace.broker.machines.runtime import MachineRuntime, codec_of
from tailrace.cluster.controller import Controller
from tailrace.cluster.records import RECORD_KINDS
from tailrace.model.faults import NotLeader
from tests.unit.broker.simulated import Brokers, simulated


@simulated(count=1)
async def test_who_could_not_begin_at_once_begins_later_and_serves_meanwhile(brokers: Brokers) -> None:
    node = brokers[1]
    tries: list[MachineRuntime[Controller]] = []

    async def begins(coordinator: MachineRuntime[Controller]) -> None:
        assert tenure.runtime is coordinator
        tries.append(coordinator)
        if len(tries) < 3:
            raise NotLeader("nobody is heard yet")

    def ends() -> None:
        raise AssertionError("it was given up")

    codec = codec_of(RECORD_KINDS)
    tenure = LeadershipTerm(
        node.metadata, Controller, codec, node.ports.clock, node.spawn, level=lambda _: 1, begins=begins, ends=ends
    )
    brokers.within(1, tenure.leader_changed)
    await brokers.until(lambda: len(tries) == 3)
    assert tries == [tenure.runtime] * 3
    await brokers.elapse(5.0)
    assert len(tries) == 3
