"""The runner of the transcripts of classic groups.

The answers of a turn are shown. A transcript names clients: `a` is a client, `a1` the first member id that it was
given. Unless a command says otherwise, clients support one protocol, `range`, and subscribe to `t`.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from struct import pack
from typing import Any

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry
from tailrace.groups.requests import JoinRequest, MemberId, SyncRequest
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.classic.transcript_lines import answer_line, record_line, transition_line
from tests.unit.groups.stage import GROUP_ID, GroupStage
from tests.unit.state_tables import Command, outcome


class Client:
    """What a client remembers."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.ids = 0


class Stage(GroupStage):
    def _clear(self) -> None:
        super()._clear()
        self.log: list[Entry | InTransaction | TransactionEnded] = []
        self.clients: dict[str, Client] = {}
        self.tickets = 0
        self._turn(lambda turn: self.groups.serve(turn))

    def play(self, line: str) -> list[str]:
        return outcome(commands, WITHOUT_OUTCOME, self, line)

    # Setting up

    def begin(self, rest: str) -> None:
        self._clear()
        values = {"delay": "initial_rebalance_delay_ms", "size": "max_size"}
        changes: dict[str, Any] = {
            values[name]: int(number) for name, number in re.findall(r"(delay|size) (\d+)", rest)
        }
        self.rules = replace(self.rules, **changes)

    def fail_over(self, size: str) -> None:
        """Another broker becomes the coordinator: it has the log, and nothing else."""
        if size:
            self.rules = replace(self.rules, max_size=int(size))
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self._turn(lambda turn: self.groups.serve(turn))

    # Members

    def join(self, name: str, static: str, rest: str) -> None:
        client = self._client(name)
        protocols = re.search(r"with ([\w ]+?)(?=,|$)", rest)
        session = re.search(r"session timeout (\d+) s", rest)
        rebalance = re.search(r"rebalance timeout (\d+) s", rest)
        names = protocols[1].split() if protocols else ["range"]
        request = JoinRequest(
            identity=MemberId(client.member_id, static or None),
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=int(session[1]) * 1000 if session else 10_000,
            rebalance_timeout_ms=int(rebalance[1]) * 1000 if rebalance else 30_000,
            protocol_type="connect"
            if "as connect" in rest
            else ""
            if "without a protocol type" in rest
            else "consumer",
            protocols={one: subscription("t") for one in names},
            id_required="knows MEMBER_ID_REQUIRED" in rest,
            may_skip_assignment="knows SkipAssignment" in rest,
        )
        client.ids += not client.member_id
        ticket, new_id = self._ticket(name, "join"), f"{name}{client.ids}"
        self._turn(lambda turn: self.groups.join(GROUP_ID, request, ticket, new_id, turn), name)

    def sync(self, name: str, static: str, protocol: str, generation: str, rest: str) -> None:
        client = self._client(name)
        assignments = dict(one.split("=") for one in rest.split())
        request = SyncRequest(
            identity=MemberId(client.member_id, static or None),
            generation=int(generation) if generation else client.generation,
            protocol=protocol or None,
            assignments={member: assignment.encode() for member, assignment in assignments.items()},
        )
        ticket = self._ticket(name, "sync")
        self._turn(lambda turn: self.groups.sync(GROUP_ID, request, ticket, turn), name)

    def heartbeat(self, name: str, static: str, generation: str) -> None:
        client = self._client(name)
        number = int(generation) if generation else client.generation
        identity = MemberId(client.member_id, static or None)
        self._turn(lambda turn: self.groups.heartbeat(GROUP_ID, identity, number, turn), name, answer="ok")

    def leave(self, name: str, static: str) -> None:
        identity = MemberId(self._client(name).member_id, static or None)
        results: list[Fault | None] = []
        self._turn(lambda turn: results.extend(self.groups.leave(GROUP_ID, [identity], turn)), name)
        self.lines += [answer_line(name, fault) for fault in results if fault is not None]
        self._client(name).member_id = ""

    def restart(self, name: str) -> None:
        """A new process of the client: it does not have the member id."""
        self._client(name).member_id = ""

    def use_member_id(self, name: str, member_id: str) -> None:
        self._client(name).member_id = member_id

    # Offsets

    def commit(self, name: str, offset: str, topic: str, partition: str, generation: str) -> None:
        client = self._client(name)
        number = int(generation) if generation else client.generation
        offsets = {PartitionName(topic, int(partition)): Committed(offset=int(offset), committed_ms=self.now_ms)}
        identity = MemberId(client.member_id)
        self._turn(lambda turn: self.groups.commit(GROUP_ID, identity, number, offsets, turn), name, answer="ok")

    def commit_in_transaction(
        self, name: str, offset: str, place: str, producer: str, epoch: str, generation: str
    ) -> None:
        client = self._client(name)
        number = int(generation) if generation else client.generation
        topic, _, partition = place.partition("-")
        offsets = {PartitionName(topic, int(partition)): Committed(offset=int(offset), committed_ms=self.now_ms)}
        identity, id_and_epoch = MemberId(client.member_id), (int(producer), int(epoch))
        self._turn(
            lambda turn: self.groups.commit_in_transaction(GROUP_ID, identity, number, id_and_epoch, offsets, turn),
            name,
            answer="ok",
        )

    def end_transaction(self, producer: str, how: str) -> None:
        """Its marker is appended and replayed."""
        self.log.append(TransactionEnded(int(producer), how == "committed"))
        self.groups.replay(self.log[-1])

    def delete_offset(self, topic: str, partition: str) -> None:
        results: list[Fault | None] = []
        place = PartitionName(topic, int(partition))
        self._turn(lambda turn: results.extend(self.groups.delete_offsets(GROUP_ID, [place], turn)), "an administrator")
        self.lines += [answer_line("an administrator", fault) for fault in results if fault is not None]

    def delete_topic(self, name: str) -> None:
        self.groups.topics_deleted([name])

    # State

    def show(self) -> None:
        group = self.groups.groups.get(GROUP_ID)
        self.lines.append(_described(group) if isinstance(group, ClassicGroup) else "no group")
        self.show_offsets()
        for place in self.groups.pending.places(GROUP_ID):
            self.lines.append(f"offset of {place.topic}-{place.partition}: pending")

    # Inside

    def stay_alive(self, name: str) -> None:
        self.heartbeat(name, "", "")

    def _client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client())

    def _ticket(self, name: str, what: str) -> tuple[str, str, int]:
        self.tickets += 1
        return (name, what, self.tickets)

    def _turn(self, act: Callable[[GroupTurn], None], name: str = "", answer: str = "") -> None:
        turn = GroupTurn(now=self.now_ms / 1000, wall_ms=self.now_ms, rules=self.rules, alarms=self.groups.alarms)
        try:
            act(turn)
        except Fault as fault:
            self.lines.append(answer_line(name, fault))
            assert [turn.records, turn.answers, turn.moves] == [[], [], []], "a refused request changed something"
            return
        self._done(turn)
        if answer:
            self.lines.append(f"{name} is answered: {answer}")

    def _done(self, turn: GroupTurn) -> None:
        for _, move in turn.moves:
            self.moves[move] = None
            self.lines.append(transition_line(move))
        for entry in turn.records:
            self.log.append(entry)
            self.groups.replay(entry)
            self.lines.append(record_line(entry))
        for ticket, answer in turn.answers:
            name = ticket[0]  # type: ignore[index]
            client = self._client(name)
            client.member_id = getattr(answer, "member_id", client.member_id)
            client.generation = getattr(answer, "generation", client.generation)
            self.lines.append(answer_line(name, answer))


def subscription(*topics: str) -> bytes:
    """A ConsumerProtocol subscription, version 0."""
    names = b"".join(pack(">h", len(one)) + one.encode() for one in topics)
    return pack(">hi", 0, len(topics)) + names + pack(">i", -1)


def _described(group: ClassicGroup) -> str:
    members = ", ".join(f"{one.id}={one.assignment.decode() or '-'}" for one in group.members.values())
    return f"{group.state.value}, generation {group.generation}, leader {group.leader}: {members or 'no members'}"


CLIENT = r"(\w+?)(?: \(static (\w+)\))?"
commands: dict[str, Command] = {
    r"begin(.*)": Stage.begin,
    r"another broker becomes coordinator(?:, size (\d+))?": Stage.fail_over,
    rf"{CLIENT} joins(.*)": Stage.join,
    rf"{CLIENT} syncs(?: with (\w+))?(?: in generation (\d+))?(?:: (.+))?": Stage.sync,
    rf"{CLIENT} heartbeats(?: in generation (\d+))?": Stage.heartbeat,
    rf"{CLIENT} leaves": Stage.leave,
    r"(\w+) restarts": Stage.restart,
    r"(\w+) uses member id (\w+)": Stage.use_member_id,
    r"(\w+) commits (\d+) of (\w+)-(\d)(?: in generation (-?\d+))?": Stage.commit,
    r"(\w+) commits (\d+) of (\w+-\d) in a transaction of (\d+)/(\d+)(?:, generation (-?\d+))?": (
        Stage.commit_in_transaction
    ),
    r"the transaction of (\d+) is (committed|aborted)": Stage.end_transaction,
    r"the group is deleted": Stage.delete,
    r"the offset of (\w+)-(\d) is deleted": Stage.delete_offset,
    r"topic (\w+) is deleted": Stage.delete_topic,
    r"offsets expire": Stage.expire,
    r"(\d+) s pass(?:, (.+?) heartbeats?)?": Stage.elapse,
    r"show": Stage.show,
}
WITHOUT_OUTCOME = (Stage.begin, Stage.delete_topic, Stage.end_transaction, Stage.restart, Stage.use_member_id)
