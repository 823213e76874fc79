"""This broker's replica of a partition as a member of the Raft quorum: feeds the pure state machine, executes effects.

`step` is the only way to feed it. The effects of one event are executed in the order that `raft.effects` gives, before
the next event is processed. Truncating the log takes time: events that arrive meanwhile are deferred, and nothing is
fetched until it is done.

A replica whose log has failed, or that finds the quorum in an impossible state (`Inconsistent`), goes *offline*: it
sends nothing, processes no events and is no candidate until the broker restarts.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from tailrace.broker.partitions.member_ports import FollowerView, MemberObserver, MemberPorts
from tailrace.broker.partitions.quorum_batches import leader_change_of, voters_of
from tailrace.log.log import Appended, Damage, Log
from tailrace.model.faults import CorruptBatch, StorageFailed
from tailrace.model.ids import BrokerId, Epoch, Offset, TopicPartition
from tailrace.model.limits import HELD_MESSAGES_MAX
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.raft.effects import Effects, Vote
from tailrace.raft.events import (
    BegunAnew,
    Event,
    LogDamaged,
    Repaired,
    Resign,
    Tick,
    Transfer,
    Truncated,
    VotersAppended,
    VoteStored,
)
from tailrace.raft.messages import FetchAnswer, Message
from tailrace.raft.replica import Replica, Role, Voter
from tailrace.raft.roles import Cause
from tailrace.raft.state import Inconsistent
from tailrace.records.header import read_header

logger: Final = logging.getLogger(__name__)

LEADER_CHANGE_RETRY_S: Final = 1.0
TRUNCATE_RETRY_S: Final = 0.5
REPAIR_RETRY_S: Final = 0.2


class QuorumMember:
    def __init__(
        self,
        name: str,
        key: TopicPartition,
        log: Log,
        replica: Replica,
        ports: MemberPorts,
        observer: MemberObserver,
    ) -> None:
        self.name = name  # topic-partition, for messages
        self.key = key
        self.log = log
        self.replica = replica
        self.ports = ports
        self._observer = observer
        self.sessions: dict[FollowerView, None] = {}  # of followers that fetch this partition from here
        self.offline: StorageFailed | None = None
        self.damage: Damage | None = None  # in the log, or in the one that was set aside until this one is whole
        self.closed = False  # the topic was deleted, or this replica was removed
        self.leader_is_gone = False  # lost its connection or resigned a moment ago: an election is under way
        self.wakes_at: float | None = None  # when `tick` is scheduled
        self.is_idle = False  # idle leader, skipped by the periodic checks until something happens to it
        # Elected, but the leader-change batch is not committed: the high watermark known here may still be lower than
        # what consumers have read from the previous leader.
        self.announcing = False
        # Epoch and log end of a leader: a replica that may not vote votes once its log is durable up to there.
        self._catch_up_target: tuple[Epoch, int] | None = None
        self._truncating = False  # or being emptied, or its horizon is being stored: no events until that is done
        self._horizon_being_stored = 0
        self._deferred: deque[Event] = deque()  # while the log is being truncated
        self._seen: tuple[Role, Epoch, Voter | None] = (replica.role, replica.epoch, replica.leader)
        log.on_durable = self._synced
        log.on_failed = self._log_failed
        log.on_damaged = self._log_damaged

    @property
    def leads(self) -> bool:
        return self.replica.role is Role.LEADER and not self.announcing and self.offline is None

    @property
    def leader(self) -> BrokerId | None:
        """The leader, as far as this replica knows."""
        leader = self.replica.leader
        return None if leader is None else leader.broker

    @property
    def fetches(self) -> bool:
        """Whether it can append what it would fetch."""
        return not self._truncating and self.offline is None and not self.closed

    # Events

    def begin(self, patience_s: float = 0.0) -> None:
        """Start taking part in the quorum, with the voters and the end offset of the log."""
        self.replica.start_timeout(self._now(), self.ports.chance(), patience_s)
        for offset, voters in self.log.voter_sets:
            self.replica.step(VotersAppended(Offset(offset), _voters(voters)), self._now(), self.ports.chance())
        self.replica.progress(self.log.end, self.log.durable)
        self._after_event()

    def step(self, event: Event, records: memoryview | None = None) -> None:
        """Process one event; `records` are the batches that came with a `FetchAnswer`."""
        if self.offline is not None or self.closed:
            return
        if self._truncating:
            self._defer(event)
            return
        try:
            effects = self.replica.step(event, self._now(), self.ports.chance())
        except Inconsistent as error:
            self.go_offline(StorageFailed(f"{self.name}: {error}"))
            return
        self._carry_out(effects, records)
        self._observer.progressed()

    def _defer(self, event: Event) -> None:
        """Keep an event until the log is truncated; a tick follows then anyway, and peers repeat dropped messages."""
        droppable = isinstance(event, Message) and len(self._deferred) >= HELD_MESSAGES_MAX
        if not isinstance(event, FetchAnswer | Tick) and not droppable:
            self._deferred.append(event)

    def tick(self) -> None:
        self.step(Tick())

    def vote_stored(self, vote: Vote) -> None:
        self.step(VoteStored(vote.epoch, vote.voter))

    def _carry_out(self, effects: Effects, records: memoryview | None) -> None:
        if effects.truncate_to is not None:
            self._truncating = True
            self.ports.spawn(self._truncate(effects.truncate_to))
        if effects.begin_anew:
            self._truncating = True
            self.ports.spawn(self._begin_anew())
        if effects.store_vote is not None:
            self.ports.store_vote(self, effects.store_vote)
        if effects.append_leader_change:
            elected = any(move.cause is Cause.ELECTED for move in effects.moves)  # or it was the leader already
            self.announcing = elected and self.log.refusal is None
            self._write_leader_change()
        if effects.append_voters is not None:
            self._append_voters(effects.append_voters)
        if effects.append_fetched and records:
            self._append_fetched(records)
        for message in effects.send:
            self.ports.send(self, message)
        if effects.committed is not None:
            self._high_watermark_moved()
        self._after_event()

    def _after_event(self) -> None:
        """After an event: report a change of role, epoch or leader, and schedule the next tick."""
        replica = self.replica
        known = (replica.role, replica.epoch, replica.leader)
        if known != self._seen:
            led = self._seen[0] is Role.LEADER
            self._seen = known
            if led and known[0] is not Role.LEADER:
                self.announcing = False
                self._deposed()
            self._observer.role_changed()
        if not replica.timed_by_pulse:
            self.ports.wake(self)
        self.ports.fetch_changed(self)
        self._check_leader_is_gone()

    def _check_leader_is_gone(self) -> None:
        """A leader that fell silent may still serve others; one that was lost right after an answer does not."""
        following, is_gone = self.replica.following, False
        if following is not None and following.given_up:
            is_gone = self._now() - following.heard_at < self.replica.timing.fetch_timeout_s
        if is_gone != self.leader_is_gone:
            self.leader_is_gone = is_gone
            self._observer.leader_changed()

    def _deposed(self) -> None:
        for session in list(self.sessions):
            session.deposed(self)
        self._observer.deposed()

    # The log

    def retry_leader_change(self) -> None:
        """The disk had no room for the leader-change batch: offer leadership to a follower in sync, else try again."""
        if self.announcing and self.log.epochs.last != self.replica.epoch:
            fetching = [session.broker for session in self.sessions]
            for voter in self.replica.in_sync(self._now()):
                if voter != self.replica.me and voter.broker in fetching:
                    self.step(Transfer(voter))
        if self.announcing and self.log.epochs.last != self.replica.epoch:
            self._write_leader_change()

    def _write_leader_change(self) -> None:
        """Append the control batch of a new leader."""
        now_ms = self.ports.clock.wall_ms()
        try:
            self.append_control(leader_change_of(self.replica, self.log.end, now_ms), now_ms)
        except StorageFailed as fault:
            logger.error("%s: cannot write the leader-change batch: %s", self.name, fault)
            asyncio.get_running_loop().call_later(LEADER_CHANGE_RETRY_S, self.retry_leader_change)

    def append_control(self, batch: bytearray, now_ms: int) -> Appended:
        view = memoryview(batch)
        appended = self.log.append(view, read_header(view), self.replica.epoch, now_ms, internal=True)
        self.progress()
        return appended

    def _append_voters(self, voters: Sequence[Voter]) -> None:
        now_ms, offset = self.ports.clock.wall_ms(), self.log.end
        view = memoryview(voters_of(self.replica, voters, offset, now_ms))
        try:
            self.log.append(view, read_header(view), self.replica.epoch, now_ms, internal=True)
        except StorageFailed as fault:
            logger.error("%s: cannot write the batch with the new voters: %s", self.name, fault)
            return
        self.log.sync_soon()  # whatever the fsync setting: a replica that forgets its voters could elect itself
        logger.info("%s: voters are now brokers %s", self.name, ", ".join(str(voter.broker) for voter in voters))
        self.step(VotersAppended(Offset(offset), tuple(voters)))
        self.progress()

    def _append_fetched(self, records: memoryview) -> None:
        """Append batches fetched from the leader. If that fails they are fetched again after a while."""
        known = len(self.log.voter_sets)
        try:
            self.log.append_as_is(records, self.ports.clock.wall_ms())
        except CorruptBatch as fault:
            logger.error(
                "%s: corrupt batch fetched from leader %s, fetching it again: %s", self.name, self.leader, fault
            )
            self.ports.fetch_again(self)
        except StorageFailed:  # the log has logged it
            self.ports.fetch_again(self)
        for offset, voters in self.log.voter_sets[known:]:
            self.step(VotersAppended(Offset(offset), _voters(voters)))
        self.progress()
        self.log.producers.transactions.settle(self.replica.high_watermark)

    async def _truncate(self, end: int) -> None:
        """Truncate the log, and retry while the disk has no room for the mark that this writes."""
        before, logged = self.log.end, False
        while not self.closed:
            try:
                await self.log.truncate_to(end)
                break
            except (OSError, StorageFailed) as error:
                if self.log.failed is not None or self.offline is not None:
                    self._truncating = False
                    self.go_offline(StorageFailed(f"{self.name}: cannot truncate the log to offset {end}: {error}"))
                    return
                if not logged:
                    logger.error("%s: cannot truncate the log to offset %d, retrying: %s", self.name, end, error)
                logged = True
                await asyncio.sleep(TRUNCATE_RETRY_S)
        if self.closed:
            return
        logger.info(
            "%s: log truncated from offset %d to %d: it diverged from the leader", self.name, before, self.log.end
        )
        self._truncating = False
        self.step(Truncated(Offset(self.log.end)))
        self._resume()

    def _resume(self) -> None:
        self._truncating = False
        self.progress()
        while self._deferred and not self._truncating:
            self.step(self._deferred.popleft())
        self.tick()

    def restart_log_at(self, start: int) -> None:
        """Start the log at the leader's start offset: everything below was committed and deleted."""
        if start > self.log.end and self.fetches:
            self._truncating = True
            self.ports.spawn(self._restart_log(start))

    async def _restart_log(self, start: int) -> None:
        try:
            await self.log.truncate_fully_and_start_at(start)
        except (OSError, StorageFailed) as error:
            logger.error(
                "%s: cannot restart the log at the leader's start offset %d, retrying: %s", self.name, start, error
            )
            self.ports.fetch_again(self)
        self._resume()

    async def _begin_anew(self) -> None:
        """Set the log aside and fetch everything again: the leader may lack tombstones that this log needs.

        Noted as a replica that may not vote first: from then on the log lacks what it had reported as durable."""
        end = self.log.end
        try:
            await self._observer.losing_log()
        except (OSError, StorageFailed) as error:
            logger.error("%s: cannot set the log aside to fetch it again, retrying: %s", self.name, error)
            self.ports.fetch_again(self)
            self._resume()
            return
        await self._set_log_aside(f"away for too long, the leader has removed tombstones above offset {end}")

    async def _set_log_aside(self, why: str) -> None:
        """Only a replica that is stored as one that may not vote does this, and while `_truncating`."""
        try:
            await self.log.start_over(keep_aside=True)
        except (OSError, StorageFailed) as error:
            logger.error("%s: cannot set the log aside to fetch it again, retrying: %s", self.name, error)
            self.ports.fetch_again(self)
        else:
            logger.warning(
                "%s: %s: set the log aside in %s, fetching everything from the leader; not voting until then",
                self.name,
                why,
                self.log.folder,
            )
            self._truncating = False
            self.step(BegunAnew())
        self._resume()

    async def _repair_log(self, damage: Damage) -> None:
        """Fetch everything from the leader again, while the broker serves. This replica is offline at first.

        It comes back as one that may not vote, and finds out who leads. Without a live leader it keeps its log."""
        while not self.closed:
            try:
                await self._observer.losing_log()
                break
            except (OSError, StorageFailed) as error:
                logger.error("%s: cannot note that it may not vote, retrying: %s", self.name, error)
            await asyncio.sleep(REPAIR_RETRY_S)
        while self._truncating and not self.closed:  # noqa: ASYNC110
            await asyncio.sleep(REPAIR_RETRY_S)
        if not self.closed and self.log.failed is None:
            self.offline = None
            self.step(LogDamaged())
            if self.log.damage is None:  # it was being emptied when the damage was found
                self.step(BegunAnew())
            self._observer.leader_changed()
        while self.log.damage is not None and self.log.failed is None and self.offline is None and not self.closed:
            known = self.replica.following
            if known is not None and not known.given_up and known.matched and self.fetches:
                self._truncating = True
                await self._set_log_aside(f"damaged at offset {damage.offset}")
            else:
                await asyncio.sleep(REPAIR_RETRY_S)

    def take_horizon(self, horizon: int) -> bool:
        """The leader's tombstone horizon. False: nothing may be appended before it is stored; fetched again then."""
        if self.log.end >= horizon:
            if horizon > self._horizon_being_stored and self.fetches:
                self._horizon_being_stored = horizon
                self.ports.spawn(self._store_horizon(horizon))
            return True
        if self.fetches:
            self._truncating = True
            self.ports.spawn(self._store_horizon_first(horizon))
        return False

    async def _store_horizon(self, horizon: int) -> None:
        try:
            await self.log.raise_horizon(horizon)
        except StorageFailed as error:  # the leader sends it again
            logger.error("%s: cannot store the tombstone horizon %d: %s", self.name, horizon, error)
        self._horizon_being_stored = 0

    async def _store_horizon_first(self, horizon: int) -> None:
        await self._store_horizon(horizon)
        self.ports.fetch_again(self)
        self._resume()

    def horizon_raised(self) -> None:
        """As the leader: tell the followers."""
        for session in self.sessions:
            session.committed(self)

    def note_leader_end(self, log_end: int) -> None:
        """The leader sends its log end to a replica that may not vote, which votes again once it has all below."""
        known = self.replica.following
        if self.replica.may_vote or log_end < 0 or known is None or not known.matched or not self.fetches:
            return
        # The first log end of an epoch is enough: the leader's log then has all that was committed before.
        if self._catch_up_target is None or self._catch_up_target[0] != self.replica.epoch:
            self._catch_up_target = (self.replica.epoch, log_end)
        self._check_caught_up()

    def _check_caught_up(self) -> None:
        wanted = self._catch_up_target
        if wanted is None or wanted[0] != self.replica.epoch or self.replica.may_vote or not self.fetches:
            return
        if self.log.durable >= wanted[1]:
            logger.info("%s: caught up after data loss; voting again", self.name)
            self.step(Repaired())
            self.damage = self.log.damage
            self._observer.repaired()

    # Progress

    def progress(self) -> None:
        """The log has grown, or more of it is durable."""
        if self.closed:
            return
        replica, log = self.replica, self.log
        grew = log.end > replica.log_end
        moved = replica.progress(log.end, log.durable)
        if self.sessions and grew:
            self.mark_active()
            for session in self.sessions:
                session.grew(self)
        if moved:
            self._high_watermark_moved()
        if replica.leadership is None:
            self.ports.fetch_changed(self)
        self._observer.progressed()

    def mark_active(self) -> None:
        """Something happened: followers may fall behind, or have caught up. Resume the periodic checks."""
        if self.is_idle:
            self._observer.became_active()

    def _high_watermark_moved(self) -> None:
        """The high watermark has moved."""
        if self.announcing:
            self.announcing = False
            self._observer.leader_changed()
        for session in self.sessions:
            session.committed(self)
        self._observer.high_watermark_moved()

    def _synced(self) -> None:
        self.progress()
        if self.replica.leadership is None:
            self._check_caught_up()
            self.ports.durable_moved(self)

    # Failures

    def _log_failed(self) -> None:
        fault = self.log.failed
        assert fault is not None
        self.go_offline(fault)

    def _log_damaged(self) -> None:
        """Damage was found in the log. If there are other voters, they continue without this replica, which fetches
        everything again: the metadata log at the next start, as this broker has applied it already."""
        damage, is_metadata = self.log.damage, self.key.topic_id == METADATA_TOPIC_ID
        assert damage is not None
        self.damage = damage
        self.ports.spawn(self.log.mark_damage())
        if len(self.replica.voters) > 1 and self.offline is None and not self.closed:
            self.go_offline(
                StorageFailed(f"{self.name}: log damaged: {damage}"),
                until="the broker restarts" if is_metadata else "it has noted that it may not vote",
            )
            if not is_metadata:
                self.ports.spawn(self._repair_log(damage))

    def go_offline(self, fault: StorageFailed, until: str = "the broker restarts") -> None:
        if self.offline is not None or self.closed:
            return
        logger.critical("%s: replica offline until %s: %s", self.name, until, fault)
        resigned = self.replica.step(Resign(), self._now(), self.ports.chance())
        self.offline = fault
        for message in resigned.send:
            self.ports.send(self, message)
        self._deferred.clear()
        self.announcing = False
        self._deposed()
        self._observer.leader_changed()
        self.ports.fetch_changed(self)

    def _now(self) -> float:
        return self.ports.clock.monotonic()


def _voters(pairs: Sequence[tuple[int, Any]]) -> tuple[Voter, ...]:
    return tuple(Voter(broker=BrokerId(broker), directory=directory) for broker, directory in pairs)
