"""A partition's part in its quorum: drives the pure machine, and carries out what it asks for.

`step` is the only way in. The effects of one event are carried out in the order that `raft.effects` names, before the
next event is taken. Cutting the log takes time; events that come meanwhile wait, and nothing is fetched.

A replica whose log has failed, or whose quorum broke a rule that it cannot break, is *offline*: it says nothing, hears
nothing and stands for nothing until the broker is started again.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from tailrace.broker.partitions.member_ports import FollowerView, MemberPorts
from tailrace.broker.partitions.quorum_batches import of_leader, of_voters
from tailrace.log.log import Appended, Log
from tailrace.model.faults import CorruptBatch, StorageFailed
from tailrace.model.ids import BrokerId, Epoch, Offset, TopicPartition
from tailrace.model.limits import HELD_MESSAGES_MAX
from tailrace.raft.effects import Effects, Vote
from tailrace.raft.events import Event, Repaired, Resign, Tick, Transfer, Truncated, VotersAppended, VoteStored
from tailrace.raft.messages import FetchAnswer, Message
from tailrace.raft.replica import Replica, Role, Voter
from tailrace.raft.roles import Cause
from tailrace.raft.state import Inconsistent
from tailrace.records.header import read_header

logger: Final = logging.getLogger(__name__)

ANNOUNCE_AGAIN_S: Final = 1.0
CUT_AGAIN_S: Final = 0.5


class QuorumMember:
    def __init__(self, name: str, key: TopicPartition, log: Log, replica: Replica, shell: MemberPorts) -> None:
        self.name = name  # topic and number, for people
        self.key = key
        self.log = log
        self.replica = replica
        self.ports = shell
        self.sessions: dict[FollowerView, None] = {}  # of peers that fetch this partition here
        self.offline: StorageFailed | None = None
        self.closed = False  # its topic is gone, or this broker has nothing to do with it any more
        self.wakes_at: float | None = None  # when `tick` is due, as the shell has it
        self.at_rest = False  # it leads, and nobody looks after it until it stirs
        self.announcing = False  # until it is committed readers would see an end that lies before what they have read
        self._to_regain: tuple[Epoch, int] | None = None  # where a leader's log ended: it votes once it has all of that
        self._cutting = False
        self._held: deque[Event] = deque()  # while it cuts
        self._known: tuple[Role, Epoch, Voter | None] = (replica.role, replica.epoch, replica.leader)
        log.on_durable = self._synced
        log.on_failed = self._log_failed
        log.on_damaged = self._log_damaged

    @property
    def me(self) -> Voter:
        return self.replica.me

    @property
    def epoch(self) -> Epoch:
        return self.replica.epoch

    @property
    def high_watermark(self) -> int:
        return self.replica.high_watermark

    @property
    def leads(self) -> bool:
        return self.replica.role is Role.LEADER and not self.announcing and self.offline is None

    @property
    def leader(self) -> BrokerId | None:
        """Who leads, as far as this replica knows."""
        leader = self.replica.leader
        return None if leader is None else leader.broker

    @property
    def fetches(self) -> bool:
        """Whether it can take in what it would fetch."""
        return not self._cutting and self.offline is None and not self.closed

    # Events

    def begin(self, patience_s: float = 0.0) -> None:
        """Take part: what the log says about voters, and how much of it there is."""
        self.replica.start_timeout(self._now(), self.ports.chance(), patience_s)
        for offset, voters in self.log.voter_sets:
            self.replica.step(VotersAppended(Offset(offset), _voters(voters)), self._now(), self.ports.chance())
        self.replica.progress(self.log.end, self.log.durable)
        self._look_up()

    def step(self, event: Event, records: memoryview | None = None) -> None:
        """Take one event; `records` are those that came with a `FetchAnswer`."""
        if self.offline is not None or self.closed:
            return
        if self._cutting:
            self._hold(event)
            return
        try:
            effects = self.replica.step(event, self._now(), self.ports.chance())
        except Inconsistent as error:
            self.go_offline(StorageFailed(f"{self.name}: {error}"))
            return
        self._carry_out(effects, records)

    def _hold(self, event: Event) -> None:
        """Until the log is cut. The time is looked at then, and peers say again what is left out here."""
        said_again = isinstance(event, Message) and len(self._held) >= HELD_MESSAGES_MAX
        if not isinstance(event, FetchAnswer | Tick) and not said_again:
            self._held.append(event)

    def tick(self) -> None:
        self.step(Tick())

    def vote_stored(self, vote: Vote) -> None:
        self.step(VoteStored(vote.epoch, vote.voter))

    def _carry_out(self, effects: Effects, records: memoryview | None) -> None:
        if effects.truncate_to is not None:
            self._cutting = True
            self.ports.spawn(self._cut(effects.truncate_to))
        if effects.store_vote is not None:
            self.ports.store_vote(self, effects.store_vote)
        if effects.append_leader_change:
            elected = any(move.cause is Cause.ELECTED for move in effects.moves)  # else it led and served already
            self.announcing = elected and self.log.refusal is None
            self._write_leader_change()
        if effects.append_voters is not None:
            self._append_voters(effects.append_voters)
        if effects.append_fetched and records:
            self._append_fetched(records)
        for message in effects.send:
            self.ports.send(self, message)
        if effects.committed is not None:
            self._moved_on()
        self._look_up()

    def _look_up(self) -> None:
        """After an event: tell whoever must know of another role, and when to look at the clock."""
        replica = self.replica
        known = (replica.role, replica.epoch, replica.leader)
        if known != self._known:
            led = self._known[0] is Role.LEADER
            self._known = known
            if led and known[0] is not Role.LEADER:
                self.announcing = False
                self._deposed()
            self._turned()
        if not replica.timed_by_pulse:
            self.ports.wake(self)
        self.ports.fetch_changed(self)

    def _turned(self) -> None:
        """Its role, its epoch or its leader is another now."""
        self.ports.leader_changed(self)

    def _deposed(self) -> None:
        for session in list(self.sessions):
            session.deposed(self)

    # The log

    def announce(self) -> None:
        """Try again what the disk had no room for; but whoever fetches here, and has it all, is asked to lead first."""
        if self.announcing and self.log.epochs.last != self.epoch:
            fetching = [session.broker for session in self.sessions]
            for voter in self.replica.in_sync(self._now()):
                if voter != self.me and voter.broker in fetching:
                    self.step(Transfer(voter))
        if self.announcing and self.log.epochs.last != self.epoch:
            self._write_leader_change()

    def _write_leader_change(self) -> None:
        """Append the control batch of a new leader."""
        now_ms = self.ports.clock.wall_ms()
        try:
            self.append_control(of_leader(self.replica, self.log.end, now_ms), now_ms)
        except StorageFailed as fault:
            logger.error("%s: cannot write the leader-change batch: %s", self.name, fault)
            asyncio.get_running_loop().call_later(ANNOUNCE_AGAIN_S, self.announce)

    def append_control(self, batch: bytearray, now_ms: int) -> Appended:
        view = memoryview(batch)
        appended = self.log.append(view, read_header(view), self.epoch, now_ms, internal=True)
        self.progress()
        return appended

    def _append_voters(self, voters: Sequence[Voter]) -> None:
        now_ms, offset = self.ports.clock.wall_ms(), self.log.end
        view = memoryview(of_voters(self.replica, voters, offset, now_ms))
        try:
            self.log.append(view, read_header(view), self.epoch, now_ms, internal=True)
        except StorageFailed as fault:
            logger.error("%s: cannot write the batch with the new voters: %s", self.name, fault)
            return
        self.log.sync_soon()  # whatever is promised otherwise: who forgets its voters may elect itself
        logger.info("%s: voters are now brokers %s", self.name, ", ".join(str(voter.broker) for voter in voters))
        self.step(VotersAppended(Offset(offset), tuple(voters)))
        self.progress()

    def _append_fetched(self, records: memoryview) -> None:
        """Take in a leader's batches. What the disk refuses is fetched again, after a while."""
        known = len(self.log.voter_sets)
        try:
            self.log.append_as_is(records, self.ports.clock.wall_ms())
        except CorruptBatch as fault:
            logger.error(
                "%s: corrupt batch fetched from leader %s, fetching it again: %s", self.name, self.leader, fault
            )
            self.ports.fetch_again(self)
        except StorageFailed:  # the log has said so
            self.ports.fetch_again(self)
        for offset, voters in self.log.voter_sets[known:]:
            self.step(VotersAppended(Offset(offset), _voters(voters)))
        self.progress()

    async def _cut(self, end: int) -> None:
        """What the disk has no room for yet, a mark that the log was cut, is tried again."""
        before, told = self.log.end, False
        while not self.closed:
            try:
                await self.log.truncate_to(end)
                break
            except (OSError, StorageFailed) as error:
                if self.log.failed is not None or self.offline is not None:
                    self._cutting = False
                    self.go_offline(StorageFailed(f"{self.name} could not be cut at {end}: {error}"))
                    return
                if not told:
                    logger.error("%s: cannot truncate the log to offset %d, retrying: %s", self.name, end, error)
                told = True
                await asyncio.sleep(CUT_AGAIN_S)
        if self.closed:
            return
        logger.info(
            "%s: log truncated from offset %d to %d: it diverged from the leader", self.name, before, self.log.end
        )
        self._cutting = False
        self.step(Truncated(Offset(self.log.end)))
        self._go_on()

    def _go_on(self) -> None:
        self._cutting = False
        self.progress()
        while self._held and not self._cutting:
            self.step(self._held.popleft())
        self.tick()

    def begin_at_leaders(self, start: int) -> None:
        """The leader has nothing below `start` any more: all of it was committed, and deleted."""
        if start > self.log.end and self.fetches:
            self._cutting = True
            self.ports.spawn(self._begin_anew(start))

    async def _begin_anew(self, start: int) -> None:
        try:
            await self.log.truncate_fully_and_start_at(start)
        except (OSError, StorageFailed) as error:
            logger.error(
                "%s: cannot restart the log at the leader's start offset %d, retrying: %s", self.name, start, error
            )
            self.ports.fetch_again(self)
        self._go_on()

    def heard_end(self, log_end: int) -> None:
        """Where the leader's log ends; told to a replica that may not vote, until it has all of that."""
        known = self.replica.following
        if self.replica.may_vote or log_end < 0 or known is None or not known.matched or not self.fetches:
            return
        if self._to_regain is None or self._to_regain[0] != self.epoch:  # a later leader has all that was committed
            self._to_regain = (self.epoch, log_end)
        self._look_whether_whole()

    def _look_whether_whole(self) -> None:
        wanted = self._to_regain
        if wanted is None or wanted[0] != self.epoch or self.replica.may_vote or not self.fetches:
            return
        if self.log.durable >= wanted[1]:
            logger.info("%s: caught up after data loss; voting again", self.name)
            self.step(Repaired())
            self.ports.repaired(self)

    # Progress

    def progress(self) -> None:
        """The log grew, or more of it is on disk."""
        if self.closed:
            return
        replica, log = self.replica, self.log
        grew = log.end > replica.log_end
        moved = replica.progress(log.end, log.durable)
        if self.sessions and grew:
            self.stir()
            for session in self.sessions:
                session.grew(self)
        if moved:
            self._moved_on()
        if replica.leadership is None:
            self.ports.fetch_changed(self)

    def stir(self) -> None:
        """Something happens to it: its followers may fall behind, or have caught up."""
        if self.at_rest:
            self.ports.stirred(self)

    def _moved_on(self) -> None:
        """The high watermark has moved."""
        if self.announcing:
            self.announcing = False
            self.ports.leader_changed(self)
        for session in self.sessions:
            session.committed(self)

    def _synced(self) -> None:
        self.progress()
        if self.replica.leadership is None:
            self._look_whether_whole()
            self.ports.durable_moved(self)

    # What can go wrong

    def _log_failed(self) -> None:
        fault = self.log.failed
        assert fault is not None
        self.go_offline(fault)

    def _log_damaged(self) -> None:
        """What was good is not any more. Where others have it they go on without it, until it is fetched anew."""
        self.ports.spawn(self.log.mark_damage())
        if len(self.replica.voters) > 1:
            self.go_offline(StorageFailed(f"{self.name} is damaged: {self.log.damage}"))

    def go_offline(self, fault: StorageFailed) -> None:
        if self.offline is not None or self.closed:
            return
        logger.critical("%s: replica offline until the broker restarts: %s", self.name, fault)
        farewell = self.replica.step(Resign(), self._now(), self.ports.chance())
        self.offline = fault
        for message in farewell.send:
            self.ports.send(self, message)
        self._held.clear()
        self.announcing = False
        self._deposed()
        self.ports.leader_changed(self)
        self.ports.fetch_changed(self)

    def _now(self) -> float:
        return self.ports.clock.monotonic()


def _voters(pairs: Sequence[tuple[int, Any]]) -> tuple[Voter, ...]:
    return tuple(Voter(broker=BrokerId(broker), directory=directory) for broker, directory in pairs)
