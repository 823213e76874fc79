"""Preferred elections: let the first replicas of partitions lead again.

Any broker can hold them: it asks the present leaders, each once for all its partitions, to hand over. Where a leader
has just changed it asks again, as long as there is time.
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
    RefusedElsewhere,
    UnknownTopic,
)
from tailrace.model.ids import NOBODY, BrokerId, PartitionName
from tailrace.ports import Clock
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hand_over import HandOver, HandOverAnswer, PartitionToHandOver

ASK_AGAIN_S: Final = 0.05

Asked = dict[PartitionName, PartitionToHandOver]


Ask = Callable[[BrokerId, HandOver, float], Awaitable[HandOverAnswer]]  # a broker, this one too, to hand over


class PreferredElections:
    def __init__(self, hosted: HostedPartitions, leaders: Leaders, clock: Clock, ask: Ask) -> None:
        self.hosted = hosted
        self.leaders = leaders
        self.clock = clock
        self.ask = ask

    async def hold(self, named: Iterable[PartitionName], within_s: float) -> dict[PartitionName, Fault | None]:
        """Let preferred replicas lead; the fault of each partition, None: it was elected."""
        return await Election(self, named).hold(within_s)


class Election:
    def __init__(self, elections: PreferredElections, named: Iterable[PartitionName]) -> None:
        self._elections = elections
        self._answers: dict[PartitionName, Fault | None] = dict.fromkeys(named)
        self._open = list(self._answers)  # what is not decided

    async def hold(self, within_s: float) -> dict[PartitionName, Fault | None]:
        """Ask until all is decided or the time is up; what became of each partition, None: it was elected."""
        clock = self._elections.clock
        deadline = clock.monotonic() + within_s
        while True:
            asked, left_s = self._by_leader(), deadline - clock.monotonic()
            await asyncio.gather(*(self._ask(leader, ones, left_s) for leader, ones in asked.items()))
            self._open = [one for one in self._open if isinstance(self._answers[one], NotLeader)]
            if not self._open or clock.monotonic() + ASK_AGAIN_S > deadline:
                return self._answers
            await asyncio.sleep(ASK_AGAIN_S)

    def _by_leader(self) -> dict[BrokerId, Asked]:
        """Whom to ask for what; the rest is answered now."""
        asked: dict[BrokerId, Asked] = {}
        for one in self._open:
            try:
                leader, wanted = self._leader_to_ask(*one)
                asked.setdefault(leader, {})[one] = wanted
            except Fault as fault:
                self._answers[one] = fault
        return asked

    def _leader_to_ask(self, name: str, index: int) -> tuple[BrokerId, PartitionToHandOver]:
        image = self._elections.hosted.image
        topic = image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise UnknownTopic(f"there is no partition {index} of a topic {name}")
        preferred = topic.partitions[index].replicas[0]
        leader = self._elections.leaders.one(topic, index).leader
        if leader == preferred:
            raise ElectionNotNeeded(f"{name}-{index}: broker {preferred} leads already")
        if image.brokers[preferred].fenced:
            raise PreferredLeaderNotAvailable(f"{name}-{index}: broker {preferred} is not there")
        if leader == NOBODY:
            raise NotLeader(f"{name}-{index}: nobody leads it at the moment")
        return leader, PartitionToHandOver(topic_id=topic.id, partition=index, to=preferred)

    async def _ask(self, leader: BrokerId, asked: Asked, within_s: float) -> None:
        request = HandOver(partitions=tuple(asked.values()))
        try:
            answer = await self._elections.ask(leader, request, within_s)
        except Unreachable as error:
            fault = BrokerNotAvailable(f"broker {leader}, which leads, does not answer: {error}")
            self._answers.update(dict.fromkeys(asked, fault))
            return
        names = {(one.topic_id, one.partition): named for named, one in asked.items()}
        for one in answer.partitions:
            self._answers[names[one.topic_id, one.partition]] = _fault(one.error_code, one.error_message or "")


def _fault(code: int, message: str) -> Fault | None:
    if code == Error.NONE:
        return None
    return NotLeader(message) if code == Error.NOT_LEADER_OR_FOLLOWER else RefusedElsewhere(message, code)
