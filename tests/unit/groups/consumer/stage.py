"""The runner of the transcripts of consumer groups (KIP-848).

A member's id is its client's name. A client remembers its epoch and its assignment. It reports the partitions that it
owns only where the transcript says so, or when it acknowledges its assignment. `t0` is partition 0 of the topic `t`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.groups.consumer.requests import JOIN_EPOCH, UNCHANGED, Heartbeat
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry
from tailrace.groups.requests import Answer, MemberId
from tailrace.groups.topics import KnownTopic
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.model.ids import Id, PartitionName, TopicPartition
from tests.unit.groups.classic.transcript_lines import transition_line
from tests.unit.groups.consumer.transcript_lines import (
    answer_line,
    partition_names,
    record_line,
    refusal_line,
    step_line,
)
from tests.unit.groups.stage import GROUP_ID, GroupStage
from tests.unit.state_tables import Command, outcome


class StagedTopics:
    def __init__(self) -> None:
        self.revision = 0
        self.topics: dict[str, KnownTopic] = {}
        self.deleted: dict[Id, None] = {}

    def make(self, name: str, count: int) -> None:
        self.topics[name] = KnownTopic(id_of(name), count)
        self.revision += 1

    def remove(self, name: str) -> None:
        self.deleted[self.topics.pop(name).id] = None
        self.revision += 1

    def find(self, name: str) -> KnownTopic | None:
        return self.topics.get(name)

    def name_of(self, topic_id: Id) -> str | None:
        return next((name for name, topic in self.topics.items() if topic.id == topic_id), None)

    def is_deleted(self, topic_id: Id) -> bool:
        return topic_id in self.deleted

    def names(self) -> Mapping[str, None]:
        return dict.fromkeys(self.topics)


class Client:
    """What a client remembers."""

    def __init__(self, static: str | None) -> None:
        self.epoch = 0
        self.assigned: PartitionSet = ()
        self.static = static


class ConsumerStage(GroupStage):
    def _clear(self) -> None:
        super()._clear()
        self.topics = StagedTopics()
        self.log: list[Entry] = []
        self.clients: dict[str, Client] = {}
        self._turn(lambda turn: self.groups.serve(turn))

    def play(self, line: str) -> list[str]:
        return outcome(self.commands(), WITHOUT_OUTCOME, self, line)

    def commands(self) -> dict[str, Command]:
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

    def fail_over(self) -> None:
        """Another broker becomes the coordinator: it has the log, and nothing else."""
        self.groups = Groups()
        for entry in self.log:
            self.groups.replay(entry)
        self._turn(lambda turn: self.groups.serve(turn))

    # Members

    def join(self, name: str, static: str, rest: str) -> None:
        self.clients[name] = Client(static or None)
        self._heartbeat(name, JOIN_EPOCH, rest, timeout_ms=30_000, owned=())

    def heartbeat(self, name: str, rest: str) -> None:
        epoch = re.search(r"in epoch (-?\d+)", rest)
        owning = re.search(r"owning ((?:\w+\d ?)+|nothing)", rest)
        owned = None if owning is None else _partitions(owning[1])
        self._heartbeat(name, int(epoch[1]) if epoch else self.clients[name].epoch, rest, owned=owned)

    def acknowledge(self, name: str) -> None:
        """Report the assigned partitions as owned."""
        client = self.clients[name]
        self._heartbeat(name, client.epoch, "", owned=client.assigned)

    def leave(self, name: str, temporarily: str) -> None:
        self._heartbeat(name, -2 if temporarily else -1, "")

    def _heartbeat(
        self, name: str, epoch: int, rest: str, *, timeout_ms: int = UNCHANGED, owned: PartitionSet | None = None
    ) -> None:
        topics = re.search(r"subscribing to ((?:(?!with |matching |owning )[\w.]+ ?)+)", rest)
        matching = re.search(r"matching (\S+)", rest)
        assignor = re.search(r"with assignor (\w+)", rest)
        timeout = re.search(r"rebalance timeout (\d+) s", rest)
        client = self.clients[name]
        beat = Heartbeat(
            identity=MemberId(name, "" if "with an empty instance id" in rest else client.static),
            epoch=epoch,
            client_id=name,
            client_host="/127.0.0.1",
            rebalance_timeout_ms=int(timeout[1]) * 1000 if timeout else timeout_ms,
            names=tuple(topics[1].split()) if topics else None,
            expression=matching[1].strip("'") if matching else None,
            assignor=assignor[1] if assignor else None,
            owned=owned,
        )
        self._turn(lambda turn: self._send(name, beat, turn), name)

    def _send(self, name: str, beat: Heartbeat, turn: GroupTurn) -> str:
        answer, client = self.groups.consumer_heartbeat(GROUP_ID, beat, turn), self.clients[name]
        client.epoch = answer.epoch
        client.assigned = client.assigned if answer.assigned is None else answer.assigned
        return answer_line(name, answer)

    # Offsets, and the group as a whole

    def commit(self, name: str, offset: str, topic: str, partition: str, epoch: str, old: str) -> None:
        number = int(epoch) if epoch else self.clients[name].epoch
        offsets = {PartitionName(topic, int(partition)): Committed(offset=int(offset), committed_ms=self.now_ms)}
        identity, knows_epochs = MemberId("" if name == "nonmember" else name), not old

        def commit(turn: GroupTurn) -> str:
            self.groups.commit(GROUP_ID, identity, number, offsets, turn, knows_epochs=knows_epochs)
            return f"{name} is answered: ok"

        self._turn(commit, name)

    def fetch_offsets(self, name: str, epoch: str) -> None:
        def fetch(turn: GroupTurn) -> str:
            self.groups.check_offset_fetch(GROUP_ID, name, int(epoch))
            offsets = ", ".join(str(one.offset) for one in self.groups.committed(GROUP_ID).values())
            return f"{name} is answered: {offsets}"

        self._turn(fetch, name)

    # State

    def stay_alive(self, name: str) -> None:
        self.heartbeat(name, "")

    def show(self) -> None:
        group = self.shown_group()
        if group is None:
            return
        if isinstance(group, ConsumerGroup):
            self.lines += _described(group)
        self.show_offsets()

    # Inside

    def _turn(self, act: Callable[[GroupTurn], str | None], name: str = "") -> None:
        turn = GroupTurn(
            now=self.now_ms / 1000,
            wall_ms=self.now_ms,
            rules=self.rules,
            alarms=self.groups.alarms,
            topics=self.topics,
        )
        try:
            line = act(turn)
        except Fault as fault:
            self.lines.append(refusal_line(name, fault))
            assert [turn.records, turn.answers, turn.member_moves] == [[], [], []], (
                "a refused request changed something"
            )
            return
        self.lines += [transition_line(move) for _, move in turn.moves]
        self.lines += [step_line(member, move) for member, move in turn.member_moves]
        self.moves |= {move: None for _, move in turn.member_moves}
        for entry in turn.records:
            assert isinstance(entry, Entry), "these transcripts have no transactions"
            self.log.append(entry)
            self.groups.replay(entry)
            self.lines.append(record_line(entry))
        for ticket, answer in turn.answers:
            self.show_answer(str(ticket), answer)
        if line:
            self.lines.append(line)

    def show_answer(self, name: str, answer: Answer) -> None:
        """The answer to a request that waited; those of the consumer protocol never wait."""
        raise NotImplementedError


def id_of(topic: str) -> Id:
    return Id(topic.encode().ljust(16, b" "))


def _partitions(text: str) -> PartitionSet:
    names = [] if text == "nothing" else text.split()
    return partition_set(TopicPartition(id_of(one[:-1]), int(one[-1])) for one in names)


def _described(group: ConsumerGroup) -> list[str]:
    lines = [f"group epoch {group.epoch}, assignment epoch {group.assignment_epoch}"]
    for member in group.members.values():
        current = member.current
        revoking = f", revoking {partition_names(current.revoking)}" if current.revoking else ""
        lines.append(f"{member.id} in epoch {current.epoch} owns {partition_names(current.assigned)}{revoking}")
    return lines


CLIENT = r"(\w+)(?: \(static (\w*)\))?"
commands: dict[str, Command] = {
    r"begin(.*)": ConsumerStage.begin,
    r"topic (\w+) has (\d+) partitions?": ConsumerStage.make_topic,
    r"topic (\w+) is deleted": ConsumerStage.remove_topic,
    r"another broker becomes coordinator": ConsumerStage.fail_over,
    rf"{CLIENT} joins(.*)": ConsumerStage.join,
    r"(\w+) acknowledges": ConsumerStage.acknowledge,
    r"(\w+) leaves( temporarily)?": ConsumerStage.leave,
    r"(\w+) commits (\d+) of (\w+)-(\d)(?: in epoch (-?\d+))?(, with OffsetCommit version 8)?": ConsumerStage.commit,
    r"(\w+) fetches offsets in epoch (-?\d+)": ConsumerStage.fetch_offsets,
    r"the group is deleted": ConsumerStage.delete,
    r"offsets expire": ConsumerStage.expire,
    r"(\d+) s pass(?:, (.+?) heartbeats?)?": ConsumerStage.elapse,
    r"show": ConsumerStage.show,
    r"(\w+) heartbeats(.*)": ConsumerStage.heartbeat,
}
WITHOUT_OUTCOME = (ConsumerStage.begin, ConsumerStage.make_topic, ConsumerStage.remove_topic)
