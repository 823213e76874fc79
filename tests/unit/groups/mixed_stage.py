"""The same runner with clients of the classic protocol beside: `o joins the old way`.

Such a client says which partitions it has when it joins, if the transcript says so; whoever leads shares out when it
syncs. Its member id is its name.
"""

import re
from collections.abc import Callable
from struct import pack

from tailrace.groups.consumer.embedded import (
    EmbeddedAssignment,
    EmbeddedPartitions,
    EmbeddedSubscription,
    assignment_of,
)
from tailrace.groups.requests import Answer, Joined, Joining, MemberId, Synced, Syncing
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.wire.compile import encode
from tests.unit.groups.consumer_stage import GROUP_ID, Client, ConsumerStage
from tests.unit.groups.consumer_telling import partitions, refused

VERSION = 3


class MixedStage(ConsumerStage):
    def __init__(self) -> None:
        super().__init__()
        self.old: dict[str, None] = {}  # who speaks the classic protocol

    def commands(self) -> dict[str, Callable[..., None]]:
        return CLASSIC_COMMANDS | super().commands()

    def be_heard(self, who: str) -> None:
        if who in self.old:
            self.heartbeat(who, "")
        else:
            super().be_heard(who)

    def join_old(self, who: str, static: str, rest: str) -> None:
        client = self.clients.setdefault(who, Client(static or None))
        self.old[who] = None
        reading = re.search(r"reading ((?:(?!having |with )\w+ ?)+)", rest)
        having = re.search(r"having ((?:\w+\d ?)+)", rest)
        ways = re.search(r"with (\w+)", rest)
        subscription = EmbeddedSubscription(
            topics=tuple(reading[1].split()) if reading else ("t",),
            owned_partitions=_named(having[1].split() if having else []),
        )
        metadata = b"?" if "badly" in rest else pack(">h", VERSION) + encode(subscription, VERSION)
        wanted = Joining(
            who=MemberId(who if client.epoch else "", client.static),
            client_id=who,
            client_host="/127.0.0.1",
            session_timeout_ms=1 if "too briefly" in rest else 10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="connect" if "as connect" in rest else "consumer",
            protocols={ways[1] if ways else "range": metadata},
            id_required="asks for an id" in rest,
        )
        self._turn(lambda turn: self.groups.join(GROUP_ID, wanted, who, who, turn), who)

    def sync(self, who: str, rest: str) -> None:
        parts = dict(one.split("=") for one in rest.split())
        wanted = Syncing(
            who=MemberId(who, self.clients[who].static),
            generation=self.clients[who].epoch,
            assignments={member: _assignment(part.split(",")) for member, part in parts.items()},
        )
        self._turn(lambda turn: self.groups.sync(GROUP_ID, wanted, who, turn), who)

    def heartbeat(self, who: str, generation: str) -> None:
        client = self.clients[who]
        member, number = MemberId(who, client.static), int(generation) if generation else client.epoch

        def hear(turn: GroupTurn) -> str:
            self.groups.heartbeat(GROUP_ID, member, number, turn)
            return f"{who} is told: fine"

        self._turn(hear, who)

    def leave_old(self, who: str, rest: str) -> None:
        names = [who, *rest.split()]
        results: list[Fault | None] = []
        self._turn(lambda turn: results.extend(self.groups.leave(GROUP_ID, [MemberId(one) for one in names], turn)))
        self.lines += [refused(one, fault) for one, fault in zip(names, results, strict=True) if fault is not None]

    def answered(self, who: str, answer: Answer) -> None:
        match answer:
            case Joined():
                self.clients[who].epoch = answer.generation
                leads = f", leads {' '.join(one.member_id for one in answer.members)}" if answer.members else ""
                self.lines.append(f"{who} has joined: generation {answer.generation}, {answer.protocol}{leads}")
            case Synced():
                self.lines.append(f"{who} gets {partitions(assignment_of(answer.assignment, self.topics))}")
            case Fault():
                self.lines.append(refused(who, answer))


def _named(parts: list[str]) -> tuple[EmbeddedPartitions, ...]:
    return tuple(EmbeddedPartitions(topic=one[:-1], partitions=(int(one[-1]),)) for one in parts)


def _assignment(parts: list[str]) -> bytes:
    return pack(">h", VERSION) + encode(EmbeddedAssignment(assigned_partitions=_named(parts)), VERSION)


CLASSIC_COMMANDS: dict[str, Callable[..., None]] = {
    r"(\w+)(?: \(static (\w*)\))? joins the old way(.*)": MixedStage.join_old,
    r"(\w+) syncs(?:: (.+))?": MixedStage.sync,
    r"(\w+) heartbeats(?: in generation (\d+))?": MixedStage.heartbeat,
    r"(\w+)(?: and (.+))? leaves? the old way": MixedStage.leave_old,
}
