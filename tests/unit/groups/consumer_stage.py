"""The runner of transcripts of consumer groups (KIP-848): one coordinator, one command at a time, in one group, `g`.

A member's id is its client's name. A client remembers its epoch and what it was told to have; it says what it has only
where the transcript says so, or when it confirms what it was told. `t0` is partition 0 of the topic `t`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.requests import AS_BEFORE, JOINING, Heartbeat
from tailrace.groups.consumer.shares import Share, share
from tailrace.groups.consumer.states import Taken
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry
from tailrace.groups.requests import Answer, MemberId
from tailrace.groups.topics import KnownTopic
from tailrace.groups.turn import GroupTurn, Rules
from tailrace.model.faults import Fault
from tailrace.model.ids import Id, PartitionName, TopicPartition
from tests.unit.groups import telling
from tests.unit.groups.consumer_telling import partitions, refused, stepped, told, written

GROUP_ID = "g"
STEP_MS = 10
plain_rules = Rules(
    min_session_timeout_ms=1000,
    max_session_timeout_ms=60_000,
    initial_rebalance_delay_ms=0,
    max_size=100,
    offsets_retention_ms=60_000,
    consumer_session_timeout_ms=10_000,
    consumer_heartbeat_interval_ms=1000,
)


class StagedTopics:
    def __init__(self) -> None:
        self.revision = 0
        self.topics: dict[str, KnownTopic] = {}

    def make(self, name: str, count: int) -> None:
        self.topics[name] = KnownTopic(id_of(name), count)
        self.revision += 1

    def remove(self, name: str) -> None:
        del self.topics[name]
        self.revision += 1

    def find(self, name: str) -> KnownTopic | None:
        return self.topics.get(name)

    def name_of(self, topic_id: Id) -> str | None:
        return next((name for name, topic in self.topics.items() if topic.id == topic_id), None)

    def names(self) -> Mapping[str, None]:
        return dict.fromkeys(self.topics)


class Client:
    """What a client remembers."""

    def __init__(self, static: str | None) -> None:
        self.epoch = 0
        self.has: Share = ()
        self.static = static


class ConsumerStage:
    def __init__(self) -> None:
        self.taken: dict[Taken, None] = {}  # rows of the state table that were taken
        self._clear()

    def _clear(self) -> None:
        self.rules = plain_rules
        self.topics = StagedTopics()
        self.now_ms = 1_000_000
        self.groups = Groups()
        self.log: list[Entry] = []
        self.clients: dict[str, Client] = {}
        self.lines: list[str] = []
        self._turn(lambda turn: self.groups.serve(turn))

    def play(self, line: str) -> list[str]:
        self.lines = []
        for pattern, command in self.commands().items():
            found = re.fullmatch(pattern, line)
            if found:
                command(self, *found.groups(default=""))
                return self.lines or ([] if command in SPEECHLESS else ["nothing"])
        raise ValueError(f"no such command: {line}")

    def commands(self) -> dict[str, Callable[..., None]]:
        return commands

    # Setting up

    def begin(self, rest: str) -> None:
        self._clear()
        if size := re.search(r"size (\d+)", rest):
            self.rules = replace(self.rules, consumer_max_size=int(size[1]))
        may = "no migration" not in rest
        self.rules = replace(self.rules, may_upgrade=may, may_downgrade=may)

    def make_topic(self, name: str, count: str) -> None:
        self.topics.make(name, int(count))

    def remove_topic(self, name: str) -> None:
        self.topics.remove(name)

    def reload(self) -> None:
        """Another broker takes over: it knows the log, and nothing else."""
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self._turn(lambda turn: self.groups.serve(turn))

    # Members

    def join(self, who: str, static: str, rest: str) -> None:
        self.clients[who] = Client(static or None)
        self._beat(who, JOINING, rest, timeout_ms=30_000, owned=())

    def beat(self, who: str, rest: str) -> None:
        epoch = re.search(r"in epoch (-?\d+)", rest)
        having = re.search(r"having ((?:\w+\d ?)+|nothing)", rest)
        owned = None if having is None else _parts(having[1])
        self._beat(who, int(epoch[1]) if epoch else self.clients[who].epoch, rest, owned=owned)

    def confirm(self, who: str) -> None:
        client = self.clients[who]
        self._beat(who, client.epoch, "", owned=client.has)

    def leave(self, who: str, for_a_while: str) -> None:
        self._beat(who, -2 if for_a_while else -1, "")

    def _beat(
        self, who: str, epoch: int, rest: str, *, timeout_ms: int = AS_BEFORE, owned: Share | None = None
    ) -> None:
        reading = re.search(r"reading ((?:(?!by |for |matching |having )[\w.]+ ?)+)", rest)
        matching = re.search(r"matching (\S+)", rest)
        assignor = re.search(r"by (\w+)", rest)
        seconds = re.search(r"for (\d+) s", rest)
        static = re.search(r"as static (\w*)", rest)
        client = self.clients[who]
        beat = Heartbeat(
            who=MemberId(who, static[1] if static else client.static),
            epoch=epoch,
            client_id=who,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=int(seconds[1]) * 1000 if seconds else timeout_ms,
            names=tuple(reading[1].split()) if reading else None,
            expression=matching[1].strip("'") if matching else None,
            assignor=assignor[1] if assignor else None,
            owned=owned,
        )
        self._turn(lambda turn: self._hear(who, beat, turn), who)

    def _hear(self, who: str, beat: Heartbeat, turn: GroupTurn) -> str:
        answer, client = self.groups.beat(GROUP_ID, beat, turn), self.clients[who]
        client.epoch = answer.epoch
        client.has = client.has if answer.assigned is None else answer.assigned
        return told(who, answer)

    # Offsets, and the group as a whole

    def commit(self, who: str, offset: str, topic: str, partition: str, epoch: str, old: str) -> None:
        number = int(epoch) if epoch else self.clients[who].epoch
        place, one = PartitionName(topic, int(partition)), Committed(offset=int(offset), committed_ms=self.now_ms)
        member, knows = MemberId("" if who == "somebody" else who), not old

        def commit(turn: GroupTurn) -> str:
            self.groups.commit(GROUP_ID, member, number, {place: one}, turn, knows_epochs=knows)
            return f"{who} is told: committed"

        self._turn(commit, who)

    def read(self, who: str, epoch: str) -> None:
        def read(turn: GroupTurn) -> str:
            self.groups.check_reader(GROUP_ID, who, int(epoch))
            return f"{who} is told: {', '.join(str(one.offset) for one in self.groups.committed(GROUP_ID).values())}"

        self._turn(read, who)

    def delete(self) -> None:
        self._turn(lambda turn: self.groups.delete(GROUP_ID, turn), "an administrator")

    def expire(self) -> None:
        self._turn(lambda turn: self.groups.expire([GROUP_ID], turn))

    # Time, and looking

    def elapse(self, seconds: str, but: str) -> None:
        """Nobody says anything, but those who are named: they are heard of every second."""
        until = self.now_ms + int(seconds) * 1000
        while self.now_ms < until:
            self.now_ms += STEP_MS
            self._turn(lambda turn: self.groups.ring(turn))
            if self.now_ms % 1000 == 0:
                for who in but.split():
                    lines = list(self.lines)
                    self.be_heard(who)
                    self.lines = lines

    def be_heard(self, who: str) -> None:
        self.beat(who, "")

    def show(self) -> None:
        group = self.groups.groups.get(GROUP_ID)
        if group is None:
            self.lines.append("there is no group")
            return
        self.lines.append(f"{group.kind} group, {group.state.value}")
        if isinstance(group, ConsumerGroup):
            self.lines += _described(group)
        for place, one in self.groups.committed(GROUP_ID).items():
            self.lines.append(f"{place.topic}-{place.partition} is read up to {one.offset}")

    # Inside

    def _turn(self, act: Callable[[GroupTurn], str | None], who: str = "") -> None:
        turn = GroupTurn(
            now=self.now_ms / 1000,
            wall_ms=self.now_ms,
            rules=self.rules,
            alarms=self.groups.alarms,
            topics=self.topics,
        )
        try:
            answer = act(turn)
        except Fault as fault:
            self.lines.append(refused(who, fault))
            assert [turn.records, turn.answers, turn.steps] == [[], [], []], "a refusal changes nothing"
            return
        self.lines += [telling.moved(move) for _, move in turn.moves]
        self.lines += [stepped(member, taken) for member, taken in turn.steps]
        self.taken |= {taken: None for _, taken in turn.steps}
        for entry in turn.records:
            assert isinstance(entry, Entry), "nothing here is done in transactions"
            self.log.append(entry)
            self.groups.replay(entry)
            self.lines.append(written(entry))
        for ticket, given in turn.answers:
            self.answered(str(ticket), given)
        if answer:
            self.lines.append(answer)

    def answered(self, who: str, answer: Answer) -> None:
        """Somebody who waited is answered; members of this protocol never wait."""
        raise NotImplementedError


def id_of(topic: str) -> Id:
    return Id(topic.encode().ljust(16, b" "))


def _parts(text: str) -> Share:
    names = [] if text == "nothing" else text.split()
    return share(TopicPartition(id_of(one[:-1]), int(one[-1])) for one in names)


def _described(group: ConsumerGroup) -> list[str]:
    lines = [f"epoch {group.epoch}, targets of epoch {group.assignment_epoch}"]
    for member in group.members.values():
        has = member.standing
        giving_up = f", gives up {partitions(has.revoking)}" if has.revoking else ""
        lines.append(f"{member.id} in epoch {has.epoch}: {partitions(has.assigned)}{giving_up}")
    return lines


WHO = r"(\w+)(?: \(static (\w*)\))?"
commands: dict[str, Callable[..., None]] = {
    r"begin(.*)": ConsumerStage.begin,
    r"topic (\w+) has (\d+) partitions?": ConsumerStage.make_topic,
    r"topic (\w+) is deleted": ConsumerStage.remove_topic,
    r"another broker takes over": ConsumerStage.reload,
    rf"{WHO} joins(.*)": ConsumerStage.join,
    r"(\w+) confirms": ConsumerStage.confirm,
    r"(\w+) leaves( for a while)?": ConsumerStage.leave,
    r"(\w+) commits (\d+) of (\w+)-(\d)(?: in epoch (-?\d+))?(, by an old request)?": ConsumerStage.commit,
    r"(\w+) asks in epoch (-?\d+) what was read": ConsumerStage.read,
    r"the group is deleted": ConsumerStage.delete,
    r"old offsets are looked for": ConsumerStage.expire,
    r"(\d+) s pass(?:, (.+?) beats?)?": ConsumerStage.elapse,
    r"show": ConsumerStage.show,
    r"(\w+) beats(.*)": ConsumerStage.beat,
}
SPEECHLESS = (ConsumerStage.begin, ConsumerStage.make_topic, ConsumerStage.remove_topic)
