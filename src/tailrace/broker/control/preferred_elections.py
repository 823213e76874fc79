"""Preferred leader elections: move leadership to the first replica of each partition's assignment.

Any broker can hold them: it sends each current leader one request to hand over its partitions. If a leader has just
changed, it sends the request to the new one, until the time is up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.peers import Unreachable
from tailrace.model.faults import (
    BrokerNotAvailable,
    ElectionNotNeeded,
    Fault,
    NotLeader,
    PreferredLeaderNotAvailable,
    UnknownTopic,
)
from tailrace.model.ids import NO_BROKER, BrokerId, PartitionName
from tailrace.ports import Clock
from tailrace.wire.faults import fault_of
from tailrace.wire.messages.peers.hand_over import HandOver, HandOverAnswer, PartitionToHandOver

RETRY_S: Final = 0.05

ToHandOver = dict[PartitionName, PartitionToHandOver]
Ask = Callable[[BrokerId, HandOver, float], Awaitable[HandOverAnswer]]  # sends a request to a broker, or to this one


class PreferredElections:
    def __init__(self, hosted: HostedPartitions, leaders: Leaders, clock: Clock, ask: Ask) -> None:
        self.hosted = hosted
        self.leaders = leaders
        self.clock = clock
        self.ask = ask

    async def hold(self, named: Iterable[PartitionName], within_s: float) -> dict[PartitionName, Fault | None]:
        """Elect the preferred leaders of partitions. Returns each partition's fault; None: its leader was elected."""
        return await Election(self, named).hold(within_s)


class Election:
    def __init__(self, elections: PreferredElections, named: Iterable[PartitionName]) -> None:
        self._elections = elections
        self._answers: dict[PartitionName, Fault | None] = dict.fromkeys(named)
        self._open = list(self._answers)  # partitions without a final result

    async def hold(self, within_s: float) -> dict[PartitionName, Fault | None]:
        """Send requests until every partition has a final result or the time is up."""
        clock = self._elections.clock
        deadline = clock.monotonic() + within_s
        while True:
            by_leader, left_s = self._by_leader(), deadline - clock.monotonic()
            await asyncio.gather(*(self._ask(leader, wanted, left_s) for leader, wanted in by_leader.items()))
            self._open = [one for one in self._open if isinstance(self._answers[one], NotLeader)]
            if not self._open or clock.monotonic() + RETRY_S > deadline:
                return self._answers
            await asyncio.sleep(RETRY_S)

    def _by_leader(self) -> dict[BrokerId, ToHandOver]:
        """The partitions that each leader is to hand over; for the others, note the fault."""
        by_leader: dict[BrokerId, ToHandOver] = {}
        for one in self._open:
            try:
                leader, wanted = self._leader_to_ask(*one)
                by_leader.setdefault(leader, {})[one] = wanted
            except Fault as fault:
                self._answers[one] = fault
        return by_leader

    def _leader_to_ask(self, name: str, index: int) -> tuple[BrokerId, PartitionToHandOver]:
        image = self._elections.hosted.image
        topic = image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise UnknownTopic(f"there is no partition {name}-{index}")
        preferred = topic.partitions[index].replicas[0]
        leader = self._elections.leaders.one(topic, index).leader
        if leader == preferred:
            raise ElectionNotNeeded(f"Leader election not needed for {name}-{index}: broker {preferred} is the leader")
        if image.brokers[preferred].fenced:
            raise PreferredLeaderNotAvailable(f"{name}-{index}: the preferred leader, broker {preferred}, is fenced")
        if leader == NO_BROKER:
            raise NotLeader(f"{name}-{index} has no leader at the moment")
        return leader, PartitionToHandOver(topic_id=topic.id, partition=index, to=preferred)

    async def _ask(self, leader: BrokerId, wanted: ToHandOver, within_s: float) -> None:
        request = HandOver(partitions=tuple(wanted.values()))
        try:
            answer = await self._elections.ask(leader, request, within_s)
        except Unreachable as error:
            fault = BrokerNotAvailable(f"the leader, broker {leader}, does not answer: {error}")
            self._answers.update(dict.fromkeys(wanted, fault))
            return
        names = {(one.topic_id, one.partition): named for named, one in wanted.items()}
        for one in answer.partitions:
            self._answers[names[one.topic_id, one.partition]] = fault_of(one.error_code, one.error_message or "")
