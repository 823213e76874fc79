"""The runner of the transcripts of consumer groups, with clients of the classic protocol: `o sends JoinGroup`.

Such a client reports the partitions that it owns when it joins, if the transcript says so; the leader of a generation
sends the assignments with its SyncGroup. Its member id is its name.
"""

import re
from struct import pack

from tailrace.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolPartitions,
    ConsumerProtocolSubscription,
    decode_assignment,
)
from tailrace.groups.requests import Answer, JoinAnswer, JoinRequest, MemberId, SyncAnswer, SyncRequest
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.wire.compile import encode
from tests.unit.groups.consumer.stage import Client, ConsumerStage
from tests.unit.groups.consumer.transcript_lines import partition_names, refusal_line
from tests.unit.groups.stage import GROUP_ID
from tests.unit.state_tables import Command

VERSION = 3


class MixedStage(ConsumerStage):
    def __init__(self) -> None:
        super().__init__()
        self.classic: dict[str, None] = {}  # the clients of the classic protocol

    def commands(self) -> dict[str, Command]:
        return CLASSIC_COMMANDS | super().commands()

    def stay_alive(self, name: str) -> None:
        if name in self.classic:
            self.classic_heartbeat(name, "")
        else:
            super().stay_alive(name)

    def classic_join(self, name: str, static: str, rest: str) -> None:
        client = self.clients.setdefault(name, Client(static or None))
        self.classic[name] = None
        topics = re.search(r"subscribing to ((?:(?!owning |with )\w+ ?)+)", rest)
        owning = re.search(r"owning ((?:\w+\d ?)+)", rest)
        protocol = re.search(r"with protocol (\w+)", rest)
        subscription = ConsumerProtocolSubscription(
            topics=tuple(topics[1].split()) if topics else ("t",),
            owned_partitions=_named(owning[1].split() if owning else []),
        )
        is_invalid = "with an invalid subscription" in rest
        metadata = b"?" if is_invalid else pack(">h", VERSION) + encode(subscription, VERSION)
        request = JoinRequest(
            identity=MemberId(name if client.epoch else "", client.static),
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=1 if "with session timeout 1 ms" in rest else 10_000,
            rebalance_timeout_ms=20_000,
            protocol_type="connect" if "as connect" in rest else "consumer",
            protocols={protocol[1] if protocol else "range": metadata},
            id_required="knows MEMBER_ID_REQUIRED" in rest,
        )
        self._turn(lambda turn: self.groups.join(GROUP_ID, request, name, name, turn), name)

    def classic_sync(self, name: str, rest: str) -> None:
        assignments = dict(one.split("=") for one in rest.split())
        request = SyncRequest(
            identity=MemberId(name, self.clients[name].static),
            generation=self.clients[name].epoch,
            assignments={member: _assignment(some.split(",")) for member, some in assignments.items()},
        )
        self._turn(lambda turn: self.groups.sync(GROUP_ID, request, name, turn), name)

    def classic_heartbeat(self, name: str, generation: str) -> None:
        client = self.clients[name]
        identity, number = MemberId(name, client.static), int(generation) if generation else client.epoch

        def heartbeat(turn: GroupTurn) -> str:
            self.groups.heartbeat(GROUP_ID, identity, number, turn)
            return f"{name} is answered: ok"

        self._turn(heartbeat, name)

    def classic_leave(self, name: str) -> None:
        results: list[Fault | None] = []
        self._turn(lambda turn: results.extend(self.groups.leave(GROUP_ID, [MemberId(name)], turn)))
        self.lines += [refusal_line(name, fault) for fault in results if fault is not None]

    def show_answer(self, name: str, answer: Answer) -> None:
        match answer:
            case JoinAnswer():
                self.clients[name].epoch = answer.generation
                leads = f", leads {' '.join(one.member_id for one in answer.members)}" if answer.members else ""
                self.lines.append(f"{name} has joined: generation {answer.generation}, {answer.protocol}{leads}")
            case SyncAnswer():
                assigned = decode_assignment(answer.assignment, self.topics)
                self.lines.append(f"{name} is assigned {partition_names(assigned)}")
            case Fault():
                self.lines.append(refusal_line(name, answer))


def _named(partitions: list[str]) -> tuple[ConsumerProtocolPartitions, ...]:
    return tuple(ConsumerProtocolPartitions(topic=one[:-1], partitions=(int(one[-1]),)) for one in partitions)


def _assignment(partitions: list[str]) -> bytes:
    value = ConsumerProtocolAssignment(assigned_partitions=_named(partitions))
    return pack(">h", VERSION) + encode(value, VERSION)


CLASSIC_COMMANDS: dict[str, Command] = {
    r"(\w+)(?: \(static (\w*)\))? sends JoinGroup(.*)": MixedStage.classic_join,
    r"(\w+) sends SyncGroup(?:: (.+))?": MixedStage.classic_sync,
    r"(\w+) sends Heartbeat(?: in generation (\d+))?": MixedStage.classic_heartbeat,
    r"(\w+) sends LeaveGroup": MixedStage.classic_leave,
}
