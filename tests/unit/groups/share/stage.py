"""The runner of the transcripts of share groups (KIP-932).

A member's id is its client's name. A client remembers its epoch. `t0` is partition 0 of the topic `t`. What leaders and
the share coordinator do for the group is said by the transcript: an attempt begins, and later some of it is done.
"""

from collections.abc import Callable
from dataclasses import replace

from tailrace.groups.consumer.partition_sets import PartitionSet, partition_set
from tailrace.groups.consumer.requests import JOIN_EPOCH, Heartbeat
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.records import Entry
from tailrace.groups.requests import JoinRequest, MemberId, SyncRequest
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.share.initializing import ShareStateWork
from tailrace.groups.share.requests import LEAVE_EPOCH, ShareHeartbeat
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName, TopicPartition
from tests.unit.groups.classic.transcript_lines import record_line as classic_record_line
from tests.unit.groups.consumer.stage import StagedTopics, id_of
from tests.unit.groups.consumer.transcript_lines import partition_names, refusal_line
from tests.unit.groups.share.transcript_lines import answer_line, move_line, record_line, state_line
from tests.unit.groups.stage import GROUP_ID, GroupStage
from tests.unit.state_tables import Command, outcome


class ShareStage(GroupStage):
    def _clear(self) -> None:
        super()._clear()
        self.topics = StagedTopics()
        self.log: list[Entry] = []
        self.epochs: dict[str, int] = {}  # that clients remember
        self.work: ShareStateWork | None = None  # the attempt that was begun last
        self._turn(lambda turn: self.groups.serve(turn))

    def play(self, line: str) -> list[str]:
        return outcome(commands, WITHOUT_OUTCOME, self, line)

    # Setting up

    def begin(self, size: str) -> None:
        self._clear()
        if size:
            self.rules = replace(self.rules, share_max_size=int(size))

    def make_topic(self, name: str, count: str) -> None:
        self.topics.make(name, int(count))

    def remove_topic(self, name: str, unheard: str) -> None:
        self.topics.remove(name)
        if unheard:
            return
        self._turn(lambda turn: self.groups.expire([GROUP_ID], turn))

    def fail_over(self) -> None:
        """Another broker becomes the coordinator: it has the log, and nothing else."""
        self.groups = Groups()
        self.work = None
        for entry in self.log:
            self.groups.replay(entry)
        self._turn(lambda turn: self.groups.serve(turn))

    # Members

    def join(self, name: str, topics: str) -> None:
        self._heartbeat(name, JOIN_EPOCH, tuple(topics.split()))

    def heartbeat(self, name: str, epoch: str, topics: str) -> None:
        self._heartbeat(
            name, int(epoch) if epoch else self.epochs.get(name, 1), tuple(topics.split()) if topics else None
        )

    def leave(self, name: str) -> None:
        self._heartbeat(name, LEAVE_EPOCH, None)

    def stay_alive(self, name: str) -> None:
        self.heartbeat(name, "", "")

    def _heartbeat(self, name: str, epoch: int, topics: tuple[str, ...] | None) -> None:
        beat = ShareHeartbeat(member_id=name, epoch=epoch, client_id=name, client_host="/127.0.0.1", names=topics)

        def send(turn: GroupTurn) -> str:
            answer = self.groups.share_heartbeat(GROUP_ID, beat, turn)
            self.epochs[name] = answer.epoch
            return answer_line(name, answer, self.rules.share_heartbeat_interval_ms)

        self._turn(send, name)

    # The share state of partitions

    def begin_attempt(self) -> None:
        def begin(turn: GroupTurn) -> str:
            self.work = work = self.groups.share_state_work(GROUP_ID, turn)
            if work is None:
                return "nothing to do"
            starts = [f"{partition_names([one])} at {start}" for one, start in work.initialize.items()]
            parts = (("initialize", ", ".join(starts)), ("delete", partition_names(work.delete)))
            todo = "; ".join(f"{what} {which}" for what, which in parts if which not in ("", "nothing"))
            return f"state epoch {work.state_epoch}: {todo}"

        self._turn(begin)

    def initialized(self, names: str) -> None:
        assert self.work is not None
        starts = self.work.initialize
        done = {one: starts[one] for one in (starts if names == "all" else _partitions(names))}
        self._turn(lambda turn: self.groups.share_state_initialized(GROUP_ID, done, turn))

    def deleted(self) -> None:
        assert self.work is not None
        gone = self.work.delete
        self._turn(lambda turn: self.groups.share_state_deleted(GROUP_ID, gone, turn))

    # Administrators

    def alter(self, offset: str, names: str) -> None:
        starts = {one: int(offset) for one in _partitions(names)}
        topics = {one.topic_id: one.topic_id.decode().strip() for one in starts}
        self._turn(lambda turn: self.groups.alter_share_offsets(GROUP_ID, starts, topics, turn), "an administrator")

    def delete_state(self, topic: str) -> None:
        def delete(turn: GroupTurn) -> None:
            if topic == "all topics":
                self.groups.prepare_delete(GROUP_ID, turn)
            else:
                self.groups.delete_share_state(GROUP_ID, [id_of(topic.removeprefix("topic "))], turn)

        self._turn(delete, "an administrator")

    # Clients of the other protocols

    def join_classic(self, name: str) -> None:
        request = JoinRequest(
            identity=MemberId(""),
            client_id=name,
            client_host="/127.0.0.1",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols={"range": b""},
        )
        self._turn(lambda turn: self.groups.join(GROUP_ID, request, name, "id", turn), name)

    def sync_classic(self, name: str) -> None:
        request = SyncRequest(identity=MemberId(name), generation=1, assignments={})
        self._turn(lambda turn: self.groups.sync(GROUP_ID, request, name, turn), name)

    def leave_classic(self, name: str) -> None:
        def leave(turn: GroupTurn) -> None:
            self.lines += [
                refusal_line(name, one)
                for one in self.groups.leave(GROUP_ID, [MemberId(name)], turn)
                if one is not None
            ]

        self._turn(leave, name)

    def join_consumer(self, name: str) -> None:
        beat = Heartbeat(identity=MemberId(name), epoch=0, rebalance_timeout_ms=1, names=("t",), owned=())
        self._turn(lambda turn: _nothing(self.groups.consumer_heartbeat(GROUP_ID, beat, turn)), name)

    def commit(self, name: str) -> None:
        offsets = {PartitionName("t", 0): Committed(offset=1, committed_ms=self.now_ms)}
        self._turn(lambda turn: self.groups.commit(GROUP_ID, MemberId(""), -1, offsets, turn), name)

    def commit_in_transaction(self, name: str) -> None:
        offsets = {PartitionName("t", 0): Committed(offset=1, committed_ms=self.now_ms)}
        self._turn(
            lambda turn: self.groups.commit_in_transaction(GROUP_ID, MemberId(""), -1, (1, 0), offsets, turn), name
        )

    def delete_offsets(self, name: str) -> None:
        self._turn(lambda turn: _nothing(self.groups.delete_offsets(GROUP_ID, [PartitionName("t", 0)], turn)), name)

    # State

    def show(self) -> None:
        group = self.shown_group()
        if not isinstance(group, ShareGroup):
            return
        self.lines.append(f"group epoch {group.epoch}, assignment epoch {group.assignment_epoch}")
        self.lines.append(f"partitions: {state_line(group.partitions)}")
        for member in group.members.values():
            self.lines.append(
                f"{member.id} in epoch {member.current.epoch} reads {partition_names(member.current.assigned)}"
            )

    # Inside

    def _turn(self, act: Callable[[GroupTurn], str | None], name: str = "") -> None:
        turn = GroupTurn(
            now=self.now_ms / 1000, wall_ms=self.now_ms, rules=self.rules, alarms=self.groups.alarms, topics=self.topics
        )
        try:
            line = act(turn)
        except Fault as fault:
            self.lines.append(refusal_line(name, fault))
            assert [turn.records, turn.share_moves, turn.unsettled_groups] == [[], [], {}], (
                "a refused request changed something"
            )
            return
        self.lines += [move_line(move) for _, move in turn.share_moves]
        self.moves |= {move: None for _, move in turn.share_moves}
        for entry in turn.records:
            assert isinstance(entry, Entry), "these transcripts have no transactions"
            self.log.append(entry)
            self.groups.replay(entry)
            is_share = type(entry.key).__name__.startswith("Share")
            self.lines.append(record_line(entry) if is_share else classic_record_line(entry))
        if turn.unsettled_groups:
            self.lines.append("there is work to do")
        if line:
            self.lines.append(line)


def _partitions(text: str) -> PartitionSet:
    return partition_set(TopicPartition(id_of(one[:-1]), int(one[-1])) for one in text.split())


def _nothing(_: object) -> None:
    """A result that no transcript shows."""


commands: dict[str, Command] = {
    r"begin(?: with size (\d+))?": ShareStage.begin,
    r"topic (\w+) has (\d+) partitions?": ShareStage.make_topic,
    r"topic (\w+) is deleted( without a coordinator)?": ShareStage.remove_topic,
    r"another broker becomes coordinator": ShareStage.fail_over,
    r"(\w+) joins subscribing to ?((?:\w+ ?)*)": ShareStage.join,
    r"(\w+) leaves": ShareStage.leave,
    r"an attempt begins": ShareStage.begin_attempt,
    r"((?:\w+\d ?)+|all) (?:is|are) initialized": ShareStage.initialized,
    r"the state is deleted": ShareStage.deleted,
    r"an administrator sets offset (-?\d+) for ((?:\w+\d ?)+)": ShareStage.alter,
    r"an administrator deletes the state of (all topics|topic \w+)": ShareStage.delete_state,
    r"the group is deleted": ShareStage.delete,
    r"offsets expire": ShareStage.expire,
    r"(\w+) joins with the classic protocol": ShareStage.join_classic,
    r"(\w+) syncs with the classic protocol": ShareStage.sync_classic,
    r"(\w+) leaves with the classic protocol": ShareStage.leave_classic,
    r"(\w+) joins with the consumer protocol": ShareStage.join_consumer,
    r"(\w+) commits an offset": ShareStage.commit,
    r"(\w+) commits an offset in a transaction": ShareStage.commit_in_transaction,
    r"(\w+) deletes an offset": ShareStage.delete_offsets,
    r"(\d+) s pass(?:, (.+?) heartbeats?)?": ShareStage.elapse,
    r"show": ShareStage.show,
    r"(\w+) heartbeats(?: in epoch (-?\d+))?(?: subscribing to ((?:\w+ ?)+))?": ShareStage.heartbeat,
}
WITHOUT_OUTCOME = (ShareStage.begin, ShareStage.make_topic)
