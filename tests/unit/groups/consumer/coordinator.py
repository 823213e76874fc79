"""A group coordinator that tests drive with heartbeats of consumer groups (KIP-848), without a transcript."""

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.requests import Heartbeat
from tailrace.groups.groups import Groups
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tests.unit.groups.consumer.stage import StagedTopics
from tests.unit.groups.stage import RULES


class Coordinator:
    def __init__(self) -> None:
        self.groups = Groups()
        self.topics = StagedTopics()

    @property
    def group(self) -> ConsumerGroup:
        return self.groups.find_kind("g", ConsumerGroup)

    def turn(self) -> GroupTurn:
        return GroupTurn(now=0.0, wall_ms=0, rules=RULES, alarms=self.groups.alarms, topics=self.topics)

    def join(self, name: str, expression: str | None = None, names: tuple[str, ...] | None = None) -> None:
        self._heartbeat(
            Heartbeat(
                identity=MemberId(name), epoch=0, rebalance_timeout_ms=1, names=names, expression=expression, owned=()
            )
        )

    def leave(self, name: str) -> None:
        self._heartbeat(Heartbeat(identity=MemberId(name), epoch=-1))

    def _heartbeat(self, beat: Heartbeat) -> None:
        turn = self.turn()
        self.groups.consumer_heartbeat("g", beat, turn)
        for entry in turn.records:
            self.groups.replay(entry)
