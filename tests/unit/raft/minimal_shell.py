"""The smallest shell that fulfils the contract of `Effects`: a log in memory, a disk that may lose unsynced entries.

Transcripts and random histories use it. It also shows how a replica is meant to be driven.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tailrace.log.state.epochs import EpochCache
from tailrace.model.ids import BrokerId, Epoch, Id, Offset
from tailrace.raft.effects import Effects, Vote
from tailrace.raft.events import Event, Tick, Truncated, VotersAppended, VoteStored
from tailrace.raft.messages import FetchAnswer, Fetched, Message, Synced
from tailrace.raft.replica import Replica
from tailrace.raft.timing import Timing
from tailrace.raft.voters import NO_VOTER, Voter, Voters


class Entry(NamedTuple):
    epoch: int
    value: str | Voters  # a client's record or a leader-change batch; or a voter set


class Envelope(NamedTuple):
    message: Message
    entries: tuple[Entry, ...] = ()

    def route(self) -> tuple[int, int]:
        """The broker of the sender and that of the receiver."""
        sender = self.message.peer if isinstance(self.message, Fetched | Synced) else self.message.sender
        return sender.broker, self.message.to.broker


@dataclass
class Disk:
    """What survives a crash: entries below `durable`, the last vote stored, and a high watermark that may be old."""

    entries: list[Entry] = field(default_factory=list)
    durable: int = 0
    vote: Vote = field(default_factory=lambda: Vote(epoch=Epoch(0), voter=NO_VOTER))
    high_watermark: int = 0

    def epochs(self) -> EpochCache:
        cache = EpochCache()
        for offset, entry in enumerate(self.entries):
            if entry.epoch > cache.last:
                cache.begin(entry.epoch, offset)
        return cache


def voter(broker: int, disk: int = 0) -> Voter:
    return Voter(broker=BrokerId(broker), directory=Id(bytes([broker, disk]) + bytes(14)))


Observer = Callable[["Member", Event, Effects], None]


class Member:
    """One replica, its disk and its shell."""

    machine: type[Replica] = Replica
    timing = Timing()

    def __init__(
        self, me: Voter, first_voters: Voters, disk: Disk, post: Callable[[Envelope], None], observe: Observer
    ) -> None:
        self.me = me
        self.first_voters = first_voters
        self.disk = disk
        self.post = post
        self.observe = observe
        self.alive = False
        self.slow_votes = False  # whether `store_vote` waits for `finish_vote`
        self.fetch_max_entries = 4
        self.unstored: Vote | None = None
        self.sync_started: int | None = None

    def start(self, now: float, chance: float, *, may_vote: bool = True) -> None:
        disk = self.disk
        self.epochs = disk.epochs()
        epoch = Epoch(max(disk.vote.epoch, self.epochs.last))
        self.replica = self.machine(
            me=self.me,
            epoch=epoch,
            log_end=Offset(len(disk.entries)),
            high_watermark=Offset(min(disk.high_watermark, len(disk.entries))),
            voters=self.first_voters,
            voted_for=disk.vote.voter if disk.vote.epoch == epoch else NO_VOTER,
            may_vote=may_vote,
            epochs=self.epochs,
            timing=self.timing,
            now=now,
            chance=chance,
        )
        self.alive = True
        for offset, entry in enumerate(disk.entries):
            self._report_voters(offset, entry, now, chance)
        self.replica.progress(len(disk.entries), disk.durable)

    def crash(self, kept: int = 0) -> None:
        """Lose the entries that are not synced, except the first `kept` of them, which reached the disk anyway."""
        self.alive = False
        self.unstored = self.sync_started = None
        del self.disk.entries[self.disk.durable + kept :]
        self.disk.durable = len(self.disk.entries)  # recovery syncs the entries it finds

    # Events and effects

    def step(self, event: Event, now: float, chance: float, entries: tuple[Entry, ...] = ()) -> None:
        effects = self.replica.step(event, now, chance)
        if effects.truncate_to is not None:
            self._truncate(effects.truncate_to)
        self.observe(self, event, effects)
        if effects.truncate_to is not None:
            self.step(Truncated(effects.truncate_to), now, chance)
        if effects.append_leader_change:
            self.append("a leader-change batch", now, chance)
        if effects.append_voters is not None:
            self.append(effects.append_voters, now, chance)
        if effects.append_fetched:
            for entry in entries:
                self._write(entry, now, chance)
        for message in effects.send:
            self.post(self._enveloped(message))
        if effects.store_vote is not None:
            self.unstored = effects.store_vote
            if not self.slow_votes:
                self.finish_vote(now, chance)

    def tick(self, now: float, chance: float) -> None:
        if now >= self.replica.deadline:
            self.step(Tick(), now, chance)

    def fetch(self) -> None:
        fetch = self.replica.fetch()
        if fetch is not None:
            self.post(Envelope(fetch))

    def finish_vote(self, now: float, chance: float) -> None:
        vote, self.unstored = self.unstored, None
        if vote is not None:
            self.disk.vote = vote
            self.step(VoteStored(vote.epoch, vote.voter), now, chance)

    # The log

    def append(self, value: str | Voters, now: float, chance: float) -> None:
        self._write(Entry(self.replica.epoch, value), now, chance)

    def _write(self, entry: Entry, now: float, chance: float) -> None:
        if entry.epoch > self.epochs.last:
            self.epochs.begin(entry.epoch, len(self.disk.entries))
        self.disk.entries.append(entry)
        self._report_voters(len(self.disk.entries) - 1, entry, now, chance)
        self.replica.progress(len(self.disk.entries), self.disk.durable)

    def _report_voters(self, offset: int, entry: Entry, now: float, chance: float) -> None:
        if not isinstance(entry.value, str):
            event = VotersAppended(Offset(offset), entry.value)
            self.observe(self, event, self.replica.step(event, now, chance))

    def _truncate(self, end: int) -> None:
        del self.disk.entries[end:]
        self.disk.durable = min(self.disk.durable, end)
        self.epochs.truncate_to(end)
        if self.sync_started is not None:
            self.sync_started = min(self.sync_started, end)

    def start_sync(self) -> None:
        if self.sync_started is None:
            self.sync_started = len(self.disk.entries)

    def finish_sync(self) -> None:
        """The entries that were in the log when the sync started are durable now."""
        if self.sync_started is not None:
            self.disk.durable = max(self.disk.durable, self.sync_started)
            self.disk.high_watermark = self.replica.high_watermark
            self.sync_started = None
            self.replica.progress(len(self.disk.entries), self.disk.durable)

    def _enveloped(self, message: Message) -> Envelope:
        if isinstance(message, FetchAnswer) and message.served and message.diverging is None:
            return Envelope(message, tuple(self.disk.entries[message.end : message.end + self.fetch_max_entries]))
        return Envelope(message)
