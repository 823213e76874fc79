"""The runner of transcripts: several replicas, one command at a time, messages delivered at once and in order.

Replicas fetch, sync and check their deadlines only on a command, or during `elapse`: then all of them do, every 50 ms.
The `chance` of each replica is a tenth of its number, so replica 1 always has the shortest election timeout.
"""

from collections import deque
from itertools import groupby

from tailrace.model.ids import BrokerId, Epoch
from tailrace.raft.effects import Effects, Vote
from tailrace.raft.events import AddVoter, Campaign, Event, LeaderDisconnected, RemoveVoter, Repaired, Resign, Transfer
from tailrace.raft.leading import has_quorum
from tailrace.raft.messages import Synced
from tailrace.raft.roles import Move
from tailrace.raft.voters import NO_VOTER, Voter
from tests.unit.raft.minimal_shell import Disk, Entry, Envelope, Member, voter
from tests.unit.raft.transcript_lines import described, name, names
from tests.unit.state_tables import Command, carry_out

STEP_MS = 50


class Stage:
    def __init__(self) -> None:
        self.moves: dict[Move, None] = {}  # the transitions that were made
        self._clear()

    def _clear(self) -> None:
        self.now_ms = 100_000
        self.members: dict[int, Member] = {}
        self.mail: deque[Envelope] = deque()
        self.isolated: list[int] = []
        self.held: dict[int, list[Envelope]] = {}  # by sender: messages that are held back
        self.lines: list[str] = []
        self.silent = True

    def play(self, line: str) -> list[str]:
        self.lines, self.silent = [], False
        command = carry_out(commands, self, line)
        self._deliver()
        return _collapsed(self.lines) or ([] if command in WITHOUT_OUTPUT else ["nothing"])

    # Setting up

    def voters(self, ids: str, leader: str, epoch: str, end: str) -> None:
        """A running quorum, everything committed."""
        self._clear()
        first = tuple(voter(int(one)) for one in ids.split())
        before = Epoch(int(epoch) - 1 if leader else int(epoch))
        for one in first:
            entries = [Entry(before, "…") for _ in range(int(end or 0))]
            vote = Vote(epoch=before, voter=NO_VOTER)
            self._join(one, first, Disk(entries, len(entries), vote, len(entries)))
        if leader:
            self._step(int(leader), Campaign())
            self._deliver()
            self._all_fetch_and_sync()
        self.silent = False
        self.lines.append(self._roles())

    def log(self, one: str, epochs: str, high_watermark: str) -> None:
        """Give a replica another log: the epoch of each entry, all of them durable."""
        member = self.members[int(one)]
        member.crash()
        entries = [Entry(int(epoch), f"of {epoch}") for epoch in epochs.split()]
        vote = Vote(epoch=Epoch(max(member.disk.vote.epoch, entries[-1].epoch)), voter=NO_VOTER)
        member.disk = Disk(entries, len(entries), vote, int(high_watermark or 0))
        self._start(int(one))

    def observer(self, one: str) -> None:
        self._join(voter(int(one)), next(iter(self.members.values())).replica.voters, Disk())
        self.lines.append(f"{one} observer, epoch 0, end 0")

    def _join(self, me: Voter, first: tuple[Voter, ...], disk: Disk) -> None:
        self.members[me.broker] = Member(me, first, disk, self.mail.append, self._observe)
        self._start(me.broker)

    def _start(self, one: int, *, may_vote: bool = True) -> None:
        self.members[one].start(self.now_ms / 1000, one / 10, may_vote=may_vote)

    # Network and time

    def isolate(self, ids: str) -> None:
        self.isolated += [int(one) for one in ids.split()]

    def heal(self) -> None:
        self.isolated = []

    def hold(self, one: str) -> None:
        self.held[int(one)] = []

    def release(self, one: str) -> None:
        self.mail.extend(self.held.pop(int(one)))

    def elapse(self, amount: str, unit: str) -> None:
        until = self.now_ms + int(amount) * (1000 if unit == "s" else 1)
        while self.now_ms < until:
            self.now_ms += STEP_MS
            for one, member in self.members.items():
                if member.alive:
                    before = member.replica.high_watermark
                    member.tick(self.now_ms / 1000, one / 10)
                    self._write_high_watermark(member, before)
                    self._deliver()
            self._all_fetch_and_sync()

    def _all_fetch_and_sync(self) -> None:
        for one, member in self.members.items():
            if member.alive:
                self.fetch(str(one))
                self._deliver()
                self.sync(str(one))
                self._deliver()

    # One replica

    def append(self, one: str, count: str) -> None:
        member = self.members[int(one)]
        for _ in range(int(count)):
            member.append("…", self.now_ms / 1000, 0.0)

    def fetch(self, one: str) -> None:
        self.members[int(one)].fetch()

    def fetch_one(self, one: str) -> None:
        for member in self.members.values():
            member.fetch_max_entries = 1
        self.fetch(one)
        self._deliver()
        for member in self.members.values():
            member.fetch_max_entries = 4

    def sync(self, one: str) -> None:
        member = self.members[int(one)]
        before, durable = member.replica.high_watermark, member.disk.durable
        member.start_sync()
        member.finish_sync()
        self._write_high_watermark(member, before)
        fetch = member.replica.fetch()
        if fetch is not None and member.disk.durable > durable:  # its next fetch may be waiting at the leader
            self.mail.append(Envelope(Synced.of(fetch)))

    def slow_votes(self, one: str) -> None:
        self.members[int(one)].slow_votes = True

    def store_vote(self, one: str) -> None:
        self.members[int(one)].finish_vote(self.now_ms / 1000, int(one) / 10)

    def crash(self, one: str) -> None:
        self.members[int(one)].crash()

    def restart(self, one: str, how: str) -> None:
        member = self.members[int(one)]
        if how == " with an empty disk":
            member.me = voter(int(one), member.me.directory[1] + 1)
            member.disk = Disk()
        self._start(int(one), may_vote=how != " damaged")
        replica = member.replica
        self.lines.append(
            f"{name(member.me)} {replica.role.value}, epoch {replica.epoch}, end {replica.log_end}, "
            f"high watermark {replica.high_watermark}"
        )

    def disconnect(self, one: str, leader: str) -> None:
        live = tuple(BrokerId(other) for other, member in self.members.items() if member.alive and other != int(one))
        self._step(int(one), LeaderDisconnected(BrokerId(int(leader)), live))

    def campaign(self, one: str) -> None:
        self._step(int(one), Campaign())

    def resign(self, one: str) -> None:
        self._step(int(one), Resign())

    def repaired(self, one: str) -> None:
        self._step(int(one), Repaired())

    def transfer(self, one: str, successor: str) -> None:
        self._step(int(one), Transfer(self.members[int(successor)].me))

    def add(self, one: str, added: str) -> None:
        self._step(int(one), AddVoter(self.members[int(added)].me))

    def remove(self, one: str, removed: str) -> None:
        old = next(voter for voter in self.members[int(one)].replica.voters if voter.broker == int(removed))
        self._step(int(one), RemoveVoter(old))

    # Queries

    def show(self) -> None:
        for member in self.members.values():
            if member.alive:
                replica = member.replica
                self.lines.append(
                    f"{name(member.me)} {replica.role.value}, epoch {replica.epoch}, end {replica.log_end}, "
                    f"durable {member.disk.durable}, high watermark {replica.high_watermark}"
                )

    def show_voters(self, one: str) -> None:
        self.lines.append(names(self.members[int(one)].replica.voters))

    def show_in_sync(self, one: str) -> None:
        self.lines.append(names(self.members[int(one)].replica.in_sync(self.now_ms / 1000)))

    def show_quorum(self, one: str) -> None:
        self.lines.append("yes" if has_quorum(self.members[int(one)].replica, self.now_ms / 1000) else "no")

    # Internals

    def _step(self, one: int, event: Event, entries: tuple[Entry, ...] = ()) -> None:
        member = self.members[one]
        before, end = member.replica.high_watermark, len(member.disk.entries)
        member.step(event, self.now_ms / 1000, one / 10, entries)
        if len(member.disk.entries) > end and entries:
            self._write(f"{name(member.me)} end {end} → {len(member.disk.entries)}")
        self._write_high_watermark(member, before)

    def _deliver(self) -> None:
        while self.mail:
            envelope = self.mail.popleft()
            sender, to = envelope.route()
            if sender in self.held:
                self.held[sender].append(envelope)
            elif to in self.members and self.members[to].alive and not {sender, to} & set(self.isolated):
                self._step(to, envelope.message, envelope.entries)

    def _observe(self, member: Member, event: Event, effects: Effects) -> None:
        self.moves.update(dict.fromkeys(effects.moves))
        for line in described(member, event, effects):
            self._write(line)

    def _write_high_watermark(self, member: Member, before: int) -> None:
        after = member.replica.high_watermark
        if after != before:
            self._write(f"{name(member.me)} high watermark {before} → {after}")

    def _write(self, line: str) -> None:
        if not self.silent:
            self.lines.append(line)

    def _roles(self) -> str:
        return ", ".join(f"{name(one.me)} {one.replica.role.value}" for one in self.members.values())


def _collapsed(lines: list[str]) -> list[str]:
    """Repeated lines, written once."""
    return [
        line if count == 1 else f"{line} ({count} times)"
        for line, count in ((line, len(list(group))) for line, group in groupby(lines))
    ]


commands: dict[str, Command] = {
    r"voters ([\d ]+)(?:, leader (\d))?, epoch (\d+)(?:, all at end (\d+))?": Stage.voters,
    r"log of (\d): ([\d ]+)(?:, high watermark (\d+))?": Stage.log,
    r"observer (\d)": Stage.observer,
    r"isolate ([\d ]+)": Stage.isolate,
    r"heal": Stage.heal,
    r"hold messages from (\d)": Stage.hold,
    r"release messages from (\d)": Stage.release,
    r"elapse (\d+) ?(s|ms)": Stage.elapse,
    r"(\d) appends (\d+)": Stage.append,
    r"(\d) fetches": Stage.fetch,
    r"(\d) fetches one entry": Stage.fetch_one,
    r"(\d) syncs": Stage.sync,
    r"(\d) stores votes slowly": Stage.slow_votes,
    r"(\d) has stored its vote": Stage.store_vote,
    r"(\d) crashes": Stage.crash,
    r"(\d) restarts( damaged| with an empty disk)?": Stage.restart,
    r"(\d) loses its connection to (\d)": Stage.disconnect,
    r"(\d) campaigns": Stage.campaign,
    r"(\d) resigns": Stage.resign,
    r"(\d) is repaired": Stage.repaired,
    r"(\d) transfers to (\d)": Stage.transfer,
    r"(\d) adds (\d)": Stage.add,
    r"(\d) removes (\d)": Stage.remove,
    r"show": Stage.show,
    r"voters of (\d)\?": Stage.show_voters,
    r"in-sync replicas of (\d)\?": Stage.show_in_sync,
    r"does (\d) have a quorum\?": Stage.show_quorum,
}
WITHOUT_OUTPUT = (Stage.log, Stage.isolate, Stage.heal, Stage.hold, Stage.append, Stage.slow_votes, Stage.crash)
