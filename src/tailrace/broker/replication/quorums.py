"""The Raft quorums of all partitions on this broker, and what they share: one vote journal, one heap of deadlines, one
fetch session per peer and lane in each direction, one frame of Raft messages per peer and turn of the loop.

So the cost when idle grows with the number of brokers, not of partitions: idle partitions are never visited. The
liveness of leaders and followers is that of their fetch sessions, which `watch` checks a few times a second.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.member_ports import MemberPorts
from tailrace.broker.peers import Lane, LaneKind, PeerConnection, PeerEvents, Peers
from tailrace.broker.replication.deadlines import Deadlines
from tailrace.broker.replication.election_limit import ElectionLimit
from tailrace.broker.replication.follower_session import FollowerSession
from tailrace.broker.replication.leader_session import LeaderSession
from tailrace.broker.replication.raft_inbox import Find, RaftInbox
from tailrace.broker.replication.vote_batches import VoteBatches
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.broker.timers import sleep_then_read
from tailrace.model.ids import BrokerId, TopicPartition
from tailrace.model.settings import Settings
from tailrace.ports import Clock, Ports
from tailrace.raft.effects import Vote
from tailrace.raft.events import Event
from tailrace.raft.messages import FetchAnswer, Message, Synced
from tailrace.raft.replica import Voter
from tailrace.raft.timing import Timing
from tailrace.wire.hot_fetch import PartitionFetched

logger: Final = logging.getLogger(__name__)

CHECK_S: Final = 0.2  # between two checks of the sessions' liveness
FETCH_AGAIN_S: Final = 0.02  # doubled at each try
FETCH_AGAIN_MAX_S: Final = 0.5

Spawn = Callable[[Coroutine[Any, Any, None]], None]
Connect = Callable[["Quorums"], Peers]  # makes the `Peers` whose events these quorums receive


def timing_of(settings: Settings) -> Timing:
    fetch_timeout_s = settings.controller_quorum_fetch_timeout_ms / 1000
    return Timing(
        fetch_timeout_s=fetch_timeout_s,
        check_quorum_s=0.75 * fetch_timeout_s,  # a leader without a quorum resigns before its followers elect another
        election_timeout_s=settings.controller_quorum_election_timeout_ms / 1000,
        lag_max_s=settings.replica_lag_time_max_ms / 1000,
    )


class Quorums(MemberPorts, PeerEvents):
    def __init__(
        self, ports: Ports, settings: Settings, me: Voter, journal: VoteJournal, spawn: Spawn, connect: Connect
    ) -> None:
        self.me = me
        self._spawn = spawn
        self.timing = timing_of(settings)
        self.peers = connect(self)
        self.find: Find = _none_hosted
        self._ports = ports
        self._settings = settings
        self._vote_batches = VoteBatches(journal, spawn)
        self._election_limit = ElectionLimit(ports.clock)
        self._deadlines = Deadlines(ports.clock, self._election_limit)
        self._inbox = RaftInbox(self._find, ports.clock)
        self._fetchers: dict[tuple[BrokerId, LaneKind], FollowerSession] = {}
        self._fetching: dict[QuorumMember, FollowerSession] = {}
        self._fetch_backoff: dict[QuorumMember, float] = {}  # after failed fetches: the next delay
        self._behind: dict[QuorumMember, None] = {}  # followers far behind: they fetch on the catch-up lane
        self._sessions: dict[PeerConnection, LeaderSession] = {}
        # Leaders that lost a follower's session, and when each must check its quorum.
        self._quorum_checks: dict[QuorumMember, float] = {}
        self._quorum_timer: asyncio.TimerHandle | None = None
        self._closed = False

    def _find(self, key: TopicPartition) -> QuorumMember | None:
        return self.find(key)

    # Opening and closing partitions

    def opened(self, member: QuorumMember) -> None:
        """A partition was opened: deliver the Raft messages that arrived for it before."""
        self._inbox.opened(member)

    def closed(self, member: QuorumMember) -> None:
        member.closed = True
        self._vote_batches.forget(member)
        self._deadlines.forget(member)
        self._election_limit.forget(member)
        self._leave(member)
        self._behind.pop(member, None)
        self._fetch_backoff.pop(member, None)
        self._quorum_checks.pop(member, None)
        for session in list(member.sessions):
            session.deposed(member)
        member.sessions.clear()

    # MemberPorts, which members call

    @property
    def clock(self) -> Clock:
        return self._ports.clock

    def now(self) -> float:
        return self._ports.clock.monotonic()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawn(work)

    def chance(self) -> float:
        return self._ports.random.uniform(0.0, 1.0)

    def store_vote(self, member: QuorumMember, vote: Vote) -> None:
        self._vote_batches.store(member, vote)

    @property
    def vote_problem(self) -> OSError | None:
        """Why votes cannot be stored now; None: they can."""
        return self._vote_batches.problem

    def wake(self, member: QuorumMember) -> None:
        if not self._closed:
            self._deadlines.wake(member)

    def send(self, member: QuorumMember, message: Message) -> None:
        if isinstance(message, FetchAnswer):
            for session in member.sessions:
                if isinstance(session, LeaderSession) and session.broker == message.to.broker:
                    session.take_answer(member, message)
        else:
            self.peers.send(message.to.broker, member.key, message)

    # Fetching

    def fetch_changed(self, member: QuorumMember) -> None:
        if not member.fetches and member.offline is None and not member.closed:
            return  # it is truncating its log, and calls again when that is done
        fetch = None if not member.fetches or self._closed else member.replica.fetch()
        if fetch is None:
            self._leave(member)
            return
        kind = LaneKind.CATCH_UP if member in self._behind else LaneKind.FETCH
        fetcher = self._fetching.get(member)
        if fetcher is None or (fetcher.broker, fetcher.kind) != (fetch.to.broker, kind):
            self._leave(member)
            fetcher = self._fetching[member] = self._session_to(fetch.to.broker, kind)
        fetcher.want(member, fetch)

    def _leave(self, member: QuorumMember) -> None:
        fetcher = self._fetching.pop(member, None)
        if fetcher is not None:
            fetcher.leave(member)

    def _session_to(self, broker: BrokerId, kind: LaneKind) -> FollowerSession:
        fetcher = self._fetchers.get((broker, kind))
        if fetcher is None:
            lane = self.peers.lane(broker, kind)
            fetcher = self._fetchers[broker, kind] = FollowerSession(self, lane, self.me, self._settings)
        return fetcher

    def fetch_again(self, member: QuorumMember) -> None:
        wait_s = self._fetch_backoff.get(member, FETCH_AGAIN_S)
        self._fetch_backoff[member] = min(2 * wait_s, FETCH_AGAIN_MAX_S)
        asyncio.get_running_loop().call_later(wait_s, self._fetch_again, member)

    def _fetch_again(self, member: QuorumMember) -> None:
        fetcher = self._fetching.get(member)
        if fetcher is not None:
            fetcher.ask_again(member)

    def durable_moved(self, member: QuorumMember) -> None:
        """Send the durable offset to a leader that has parked our fetch; if it is lost, the next fetch carries it."""
        fetcher, fetch = self._fetching.get(member), member.replica.fetch()
        asked = None if fetcher is None else fetcher.asks(member)
        if asked is None or fetch is None or fetch.durable < 0:
            return
        if (asked.end, asked.last_epoch, asked.epoch, asked.to) == (fetch.end, fetch.last_epoch, fetch.epoch, fetch.to):
            self.peers.send(fetch.to.broker, member.key, Synced.of(fetch))

    def answer_processed(self, member: QuorumMember, fetched: PartitionFetched, fetcher: FollowerSession) -> None:
        """Move a lagging follower to the catch-up lane, and back when it has caught up."""
        self._fetch_backoff.pop(member, None)
        behind = member in self._behind
        if fetched.high_watermark <= member.log.end:
            self._behind.pop(member, None)
        elif len(fetched.records) >= self._settings.replica_fetch_max_bytes // 2:
            self._behind[member] = None
        if behind != (member in self._behind):
            self.fetch_changed(member)

    def step_in_turn(self, member: QuorumMember, event: Event) -> None:
        """Report to a partition that its leader is silent or disconnected; elections over that are limited."""
        self._election_limit.step_in_turn(member, event)

    # PeerEvents, which peers trigger

    @property
    def live(self) -> tuple[BrokerId, ...]:
        return self.peers.live

    def raft_messages(self, sender: BrokerId, messages: Sequence[tuple[TopicPartition, Message]]) -> None:
        self._inbox.take(messages)

    def fetch(self, peer: PeerConnection, frame: memoryview, at: int, version: int, correlation_id: int) -> None:
        session = self._sessions.get(peer)
        if session is None:
            session = self._sessions[peer] = LeaderSession(self, peer)
        session.fetch(frame, at, correlation_id)

    def fetch_connection_lost(self, peer: PeerConnection) -> None:
        session = self._sessions.pop(peer, None)
        if session is not None:
            session.close()

    def fetched(self, lane: Lane, frame: memoryview) -> None:
        fetcher = self._fetchers.get((lane.broker, lane.kind))
        if fetcher is not None:
            fetcher.answered(frame)

    def lane_up(self, lane: Lane) -> None:
        fetcher = self._fetchers.get((lane.broker, lane.kind))
        if fetcher is not None:
            fetcher.lane_up()

    def lane_down(self, lane: Lane) -> None:
        fetcher = self._fetchers.get((lane.broker, lane.kind))
        if fetcher is not None:
            fetcher.lane_down()

    # Liveness

    def follower_left(self, member: QuorumMember) -> None:
        member.mark_active()
        self._quorum_checks[member] = self.now() + self.timing.check_quorum_s + CHECK_S
        self._schedule_quorum_checks()

    def _schedule_quorum_checks(self) -> None:
        if self._quorum_checks and self._quorum_timer is None and not self._closed:
            wait_s = max(CHECK_S, next(iter(self._quorum_checks.values())) - self.now())
            self._quorum_timer = asyncio.get_running_loop().call_later(wait_s, self._check_quorums)

    def _check_quorums(self) -> None:
        self._quorum_timer, now = None, self.now()
        for member, due in list(self._quorum_checks.items()):
            if due <= now:
                del self._quorum_checks[member]
                member.tick()
        self._schedule_quorum_checks()

    async def watch(self) -> None:
        """Check the liveness of all sessions, until cancelled."""
        while True:
            await sleep_then_read(CHECK_S)
            now = self.now()
            for fetcher in list(self._fetchers.values()):
                fetcher.check_alive(now, self.timing.fetch_timeout_s)
            for session in list(self._sessions.values()):
                session.check_alive(now, self.timing.check_quorum_s)
            self._inbox.forget_old(now)

    def stop(self) -> None:
        """Stop all fetches, ticks and answers."""
        self._closed = True
        self._deadlines.stop()
        self._election_limit.stop()
        self._inbox.stop()
        if self._quorum_timer is not None:
            self._quorum_timer.cancel()
        for session in list(self._sessions.values()):
            session.close()


def _none_hosted(key: TopicPartition) -> QuorumMember | None:
    return None
