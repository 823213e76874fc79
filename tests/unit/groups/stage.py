"""The runner of transcripts: one coordinator of groups, one command at a time, in one group, `g`.

Whatever a turn writes is replayed at once, as the shell does, and its answers are told. A member is named by its
client, which is told the ids that it gets: `a` is a client, `a1` the first id that it was given. Clients know one way
to share work unless told otherwise, `range`, and subscribe to `t`.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from struct import pack
from typing import Any

from tailrace.groups.group import ClassicGroup
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry
from tailrace.groups.requests import Joining, MemberId, Syncing
from tailrace.groups.states import Move
from tailrace.groups.turn import GroupTurn, Rules
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.telling import answered, moved, written

GROUP_ID = "g"
STEP_MS = 10


class Client:
    """What a client remembers."""

    def __init__(self) -> None:
        self.member_id = ""
        self.generation = -1
        self.ids = 0


class Stage:
    def __init__(self) -> None:
        self.moves: dict[Move, None] = {}  # rows of the state table that were taken
        self._clear()

    def _clear(self) -> None:
        self.rules = Rules(
            min_session_timeout_ms=1000,
            max_session_timeout_ms=60_000,
            initial_rebalance_delay_ms=0,
            max_size=100,
            offsets_retention_ms=60_000,
        )
        self.now_ms = 1_000_000
        self.groups = Groups()
        self.log: list[Entry | InTransaction | TransactionEnded] = []
        self.clients: dict[str, Client] = {}
        self.lines: list[str] = []
        self.tickets = 0
        self._turn(lambda turn: self.groups.serve(turn))

    def play(self, line: str) -> list[str]:
        self.lines = []
        for pattern, command in commands.items():
            found = re.fullmatch(pattern, line)
            if found:
                command(self, *found.groups(default=""))
                return self.lines or ([] if command in SPEECHLESS else ["nothing"])
        raise ValueError(f"no such command: {line}")

    # Setting up

    def begin(self, rest: str) -> None:
        self._clear()
        values = {"delay": "initial_rebalance_delay_ms", "size": "max_size"}
        told: dict[str, Any] = {values[name]: int(number) for name, number in re.findall(r"(delay|size) (\d+)", rest)}
        self.rules = replace(self.rules, **told)

    def reload(self, size: str) -> None:
        """Another broker takes over: it knows the log, and nothing else."""
        if size:
            self.begin_with(int(size))
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self._turn(lambda turn: self.groups.serve(turn))

    def begin_with(self, size: int) -> None:
        self.rules = replace(self.rules, max_size=size)

    # Members

    def join(self, who: str, static: str, rest: str) -> None:
        name, client = who, self._client(who)
        protocols = re.search(r"with ([\w ]+?)(?= for|,|$)", rest)
        seconds = re.search(r"session of (\d+) s", rest)
        rebalance = re.search(r"for (\d+) s", rest)
        names = protocols[1].split() if protocols else ["range"]
        wanted = Joining(
            who=MemberId(client.member_id, static or None),
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=int(seconds[1]) * 1000 if seconds else 10_000,
            rebalance_timeout_ms=int(rebalance[1]) * 1000 if rebalance else 30_000,
            protocol_type="connect" if "as connect" in rest else "" if "as nothing" in rest else "consumer",
            protocols={one: subscription("t") for one in names},
            id_required="asks for an id" in rest,
            may_skip_assignment="understands skipping" in rest,
        )
        client.ids += not client.member_id
        ticket, new_id = self._ticket(name, "join"), f"{name}{client.ids}"
        self._turn(lambda turn: self.groups.join(GROUP_ID, wanted, ticket, new_id, turn), name)

    def sync(self, who: str, static: str, protocol: str, generation: str, rest: str) -> None:
        client = self._client(who)
        parts = dict(one.split("=") for one in rest.split())
        wanted = Syncing(
            who=MemberId(client.member_id, static or None),
            generation=int(generation) if generation else client.generation,
            protocol=protocol or None,
            assignments={member: part.encode() for member, part in parts.items()},
        )
        ticket = self._ticket(who, "sync")
        self._turn(lambda turn: self.groups.sync(GROUP_ID, wanted, ticket, turn), who)

    def heartbeat(self, who: str, static: str, generation: str) -> None:
        client = self._client(who)
        number = int(generation) if generation else client.generation
        member = MemberId(client.member_id, static or None)
        self._turn(lambda turn: self.groups.heartbeat(GROUP_ID, member, number, turn), who, told="fine")

    def leave(self, who: str, static: str) -> None:
        member = MemberId(self._client(who).member_id, static or None)
        results: list[Fault | None] = []
        self._turn(lambda turn: results.extend(self.groups.leave(GROUP_ID, [member], turn)), who)
        self.lines += [answered(who, fault) for fault in results if fault is not None]
        self._client(who).member_id = ""

    def forget_id(self, who: str) -> None:
        """Its process died: the next one knows nothing."""
        self._client(who).member_id = ""

    def pose(self, who: str, member_id: str) -> None:
        self._client(who).member_id = member_id

    # Offsets

    def commit(self, who: str, offset: str, topic: str, partition: str, generation: str) -> None:
        client = self._client(who)
        number = int(generation) if generation else client.generation
        place, one = PartitionName(topic, int(partition)), Committed(offset=int(offset), committed_ms=self.now_ms)
        member = MemberId(client.member_id)
        self._turn(lambda turn: self.groups.commit(GROUP_ID, member, number, {place: one}, turn), who, told="committed")

    def commit_in_transaction(
        self, who: str, offset: str, place: str, producer: str, epoch: str, generation: str
    ) -> None:
        client = self._client(who)
        number = int(generation) if generation else client.generation
        topic, _, partition = place.partition("-")
        wanted = {PartitionName(topic, int(partition)): Committed(offset=int(offset), committed_ms=self.now_ms)}
        member, producer_now = MemberId(client.member_id), (int(producer), int(epoch))
        self._turn(
            lambda turn: self.groups.commit_in_transaction(GROUP_ID, member, number, producer_now, wanted, turn),
            who,
            told="noted",
        )

    def end_transaction(self, producer: str, how: str) -> None:
        """Its marker is appended, and replayed."""
        self.log.append(TransactionEnded(int(producer), how == "committed"))
        self.groups.replay(self.log[-1])

    def delete(self) -> None:
        self._turn(lambda turn: self.groups.delete(GROUP_ID, turn), "an administrator")

    def forget(self, topic: str, partition: str) -> None:
        results: list[Fault | None] = []
        place = PartitionName(topic, int(partition))
        self._turn(lambda turn: results.extend(self.groups.forget(GROUP_ID, [place], turn)), "an administrator")
        self.lines += [answered("an administrator", fault) for fault in results if fault is not None]

    def delete_topic(self, name: str) -> None:
        self.groups.topics_gone([name])

    def expire(self) -> None:
        self._turn(lambda turn: self.groups.expire([GROUP_ID], turn))

    # Time, and looking

    def elapse(self, seconds: str, but: str) -> None:
        """Nobody says anything, but those who are named: they send heartbeats."""
        until = self.now_ms + int(seconds) * 1000
        while self.now_ms < until:
            self.now_ms += STEP_MS
            self._turn(lambda turn: self.groups.ring(turn))
            if self.now_ms % 1000 == 0:
                for who in but.split():
                    lines = list(self.lines)
                    self.heartbeat(who, "", "")
                    self.lines = lines

    def show(self) -> None:
        group = self.groups.groups.get(GROUP_ID)
        self.lines.append(_described(group) if isinstance(group, ClassicGroup) else "there is no group")
        for place, one in self.groups.committed(GROUP_ID).items():
            self.lines.append(f"{place.topic}-{place.partition} is read up to {one.offset}")
        for place in self.groups.pending.places(GROUP_ID):
            self.lines.append(f"{place.topic}-{place.partition} is part of a transaction")

    # Inside

    def _client(self, name: str) -> Client:
        return self.clients.setdefault(name, Client())

    def _ticket(self, who: str, what: str) -> tuple[str, str, int]:
        self.tickets += 1
        return (who, what, self.tickets)

    def _turn(self, act: Callable[[GroupTurn], None], who: str = "", told: str = "") -> None:
        turn = GroupTurn(now=self.now_ms / 1000, wall_ms=self.now_ms, rules=self.rules, alarms=self.groups.alarms)
        try:
            act(turn)
        except Fault as fault:
            self.lines.append(answered(who, fault))
            assert [turn.records, turn.answers, turn.moves] == [[], [], []], "a refusal changes nothing"
            return
        self._done(turn)
        if told:
            self.lines.append(f"{who} is told: {told}")

    def _done(self, turn: GroupTurn) -> None:
        for _, move in turn.moves:
            self.moves[move] = None
            self.lines.append(moved(move))
        for entry in turn.records:
            self.log.append(entry)
            self.groups.replay(entry)
            self.lines.append(written(entry))
        for ticket, answer in turn.answers:
            who = ticket[0]  # type: ignore[index]
            client = self._client(who)
            client.member_id = getattr(answer, "member_id", client.member_id)
            client.generation = getattr(answer, "generation", client.generation)
            self.lines.append(answered(who, answer))


def subscription(*topics: str) -> bytes:
    """As consumers write it, version 0."""
    names = b"".join(pack(">h", len(one)) + one.encode() for one in topics)
    return pack(">hi", 0, len(topics)) + names + pack(">i", -1)


def _described(group: ClassicGroup) -> str:
    members = ", ".join(f"{one.id}={one.assignment.decode() or '-'}" for one in group.members.values())
    return f"{group.state.value}, generation {group.generation}, leader {group.leader}: {members or 'nobody'}"


WHO = r"(\w+?)(?: \(static (\w+)\))?"
commands: dict[str, Callable[..., None]] = {
    r"begin(.*)": Stage.begin,
    r"another broker takes over(?:, size (\d+))?": Stage.reload,
    rf"{WHO} joins(.*)": Stage.join,
    rf"{WHO} syncs(?: by (\w+))?(?: in generation (\d+))?(?:: (.+))?": Stage.sync,
    rf"{WHO} heartbeats(?: in generation (\d+))?": Stage.heartbeat,
    rf"{WHO} leaves": Stage.leave,
    r"(\w+) forgets its id": Stage.forget_id,
    r"(\w+) says it is (\w+)": Stage.pose,
    r"(\w+) commits (\d+) of (\w+)-(\d)(?: in generation (-?\d+))?": Stage.commit,
    r"(\w+) commits (\d+) of (\w+-\d) in a transaction of (\d+)/(\d+)(?:, generation (-?\d+))?": (
        Stage.commit_in_transaction
    ),
    r"the transaction of (\d+) is (committed|aborted)": Stage.end_transaction,
    r"the group is deleted": Stage.delete,
    r"(\w+)-(\d) is forgotten": Stage.forget,
    r"topic (\w+) is deleted": Stage.delete_topic,
    r"old offsets are looked for": Stage.expire,
    r"(\d+) s pass(?:, (.+?) heartbeats?)?": Stage.elapse,
    r"show": Stage.show,
}
SPEECHLESS = (Stage.begin, Stage.delete_topic, Stage.end_transaction, Stage.forget_id, Stage.pose)
