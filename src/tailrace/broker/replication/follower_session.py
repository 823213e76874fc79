"""A follower's fetch session with one leader's broker, over one lane (KIP-227).

A request contains only partitions whose fetch has changed since the last request; its answer contains only partitions
with something new. For all others the previous request and answer still hold. An answer is proof that the leader's
broker is alive: `heard_at` is the shared liveness clock (`pulse`) of all replicas in the session.

Most of the time one request is parked at the leader. A change that cannot wait for its answer (a partition that is new
here, another epoch) is sent in a second request, which makes the leader answer the first one at once. So an answer may
be to a fetch that has been superseded; it is dropped then, because the later one will be answered as well. A request
contains at most `FETCH_NAMED_MAX` partitions, so that thousands that change at once block neither side.

After an answer with few records the next request waits for the fsync that covers them, at most for `SYNC_WAIT_MAX_S`.
It then carries the durable offset, which otherwise takes a `Synced` message; and records that it would have fetched
meanwhile had to wait for the next fsync anyway. So a stream of small batches takes half as many messages, which counts
where brokers compete for the CPU. An answer with many records is followed by a request at once.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, Protocol, TypeVar

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.peers import Lane
from tailrace.model.ids import NO_ID, BrokerId, Epoch, Id, Offset, TopicPartition
from tailrace.model.limits import FETCH_NAMED_MAX, KiB
from tailrace.model.settings import Settings
from tailrace.ports import Clock
from tailrace.raft.events import Event, LeaderDisconnected, Tick
from tailrace.raft.messages import EpochEnd, FetchAnswer, Fetched
from tailrace.raft.replica import Voter
from tailrace.wire.errors import Error
from tailrace.wire.hot_fetch import PartitionFetched, PartitionWanted
from tailrace.wire.hot_replica_fetch import FetchedHead, read_fetched, write_replica_fetch
from tailrace.wire.primitives import WireError

IN_FLIGHT_MAX: Final = 2
ALONE, BESIDE_ANOTHER = 1, 0  # sent in the field min_bytes: whether another request is in flight
OPENING: Final = 0
SYNC_WAIT_MAX_S: Final = 0.005
SYNC_AWAITED_MAX_BYTES: Final = 64 * KiB  # after a larger answer, the next one is on its way during the fsync
EPOCH_MAX: Final = 2**31 - 1

T = TypeVar("T")


class Asked:
    """One partition of a session: the fetch last sent, and in which request. Also the liveness clock of its replica."""

    __slots__ = ("_fetcher", "_left_at", "fetch", "request")

    def __init__(self, fetcher: "FollowerSession") -> None:
        self._fetcher: FollowerSession | None = fetcher
        self._left_at = 0.0
        self.fetch: Fetched | None = None
        self.request = 0

    @property
    def at(self) -> float:
        return self._left_at if self._fetcher is None else self._fetcher.heard_at

    def leave(self) -> None:
        """The partition leaves the session, whose answers no longer prove that this partition's leader is alive."""
        self._left_at, self._fetcher = self.at, None


class FollowerSessions(Protocol):
    """The owner of all follower sessions, as one session needs it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def live(self) -> tuple[BrokerId, ...]: ...

    def answer_processed(self, member: QuorumMember, fetched: PartitionFetched, fetcher: "FollowerSession") -> None:
        """An answer was processed: the partition may have to change to the other lane."""

    def fetch_again(self, member: QuorumMember) -> None: ...

    def step_in_turn(self, member: QuorumMember, event: Event) -> None:
        """Report to a partition that its leader is silent or disconnected; it may start an election over that."""


class FollowerSession:
    def __init__(self, owner: FollowerSessions, lane: Lane, me: Voter, settings: Settings) -> None:
        self._owner = owner
        self._lane = lane
        self._me = me
        self._settings = settings
        self.broker = lane.broker
        self.kind = lane.kind
        self.heard_at = owner.clock.monotonic()
        self.members: dict[QuorumMember, Asked] = {}
        self._by_key: dict[TopicPartition, QuorumMember] = {}
        self._dirty: dict[QuorumMember, None] = {}  # to be sent as soon as possible
        self._durable: dict[QuorumMember, None] = {}  # with a new durable offset: sent when nothing is in flight
        self._removed: dict[TopicPartition, None] = {}
        self._session = 0
        self._epoch = OPENING
        self._requests = 0  # sent
        self._session_since = 0  # the request that opened the session
        self._in_flight: deque[int] = deque()
        self._scheduled = False
        self._urgent = False  # there is a change that cannot wait for the answer in flight
        self._answering = False  # an answer is being processed; the next request is sent after it
        self._small_answer = False  # the answer being processed has few records
        self._awaits_sync = False  # and their fsync is under way
        self._sync_timer: asyncio.TimerHandle | None = None  # while the next request waits for an fsync

    # Partitions

    def want(self, member: QuorumMember, fetch: Fetched) -> None:
        """Set the fetch of a partition."""
        asked = self.members.get(member)
        if asked is None:
            asked = self.members[member] = Asked(self)
            self._by_key[member.key] = member
        elif asked.fetch == fetch:
            return
        if asked.fetch is None or not _same_log(asked.fetch, fetch):
            self._dirty[member] = None
            if self._may_await_sync and _is_syncing(asked.fetch, fetch):
                self._awaits_sync = True
            else:
                self._soon()
        else:
            self._durable[member] = None

    def leave(self, member: QuorumMember) -> None:
        asked = self.members.pop(member, None)
        if asked is None:
            return
        asked.leave()
        del self._by_key[member.key]
        self._dirty.pop(member, None)
        self._durable.pop(member, None)
        if asked.fetch is not None:
            self._removed[member.key] = None
            self._soon()

    def asks(self, member: QuorumMember) -> Fetched | None:
        """The fetch that the leader has."""
        asked = self.members.get(member)
        return None if asked is None else asked.fetch

    def ask_again(self, member: QuorumMember) -> None:
        """Send the fetch again; answers to the one that the leader has are ignored from now on."""
        asked = self.members.get(member)
        if asked is not None:
            asked.fetch = None
            self._dirty[member] = None
            self._soon()

    # Requests

    def _soon(self) -> None:
        self._urgent = True
        if not self._scheduled and not self._answering:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._send_scheduled)

    def _send_scheduled(self) -> None:
        self._scheduled = False
        if self._urgent:
            self._send()

    @property
    def _may_await_sync(self) -> bool:
        return self._small_answer if self._answering else self._sync_timer is not None

    def _send(self) -> None:
        self._stop_waiting()
        if not self._lane.up or len(self._in_flight) >= IN_FLIGHT_MAX:
            return
        self._requests += 1
        dirty = _take_first(self._dirty, FETCH_NAMED_MAX)
        if not self._in_flight:
            dirty |= _take_first(self._durable, FETCH_NAMED_MAX - len(dirty))
        self._urgent = bool(self._dirty)
        wanted, settings = self._wanted(dirty), self._settings
        forgotten, self._removed = self._removed, {}
        frame = write_replica_fetch(
            self._requests,
            replica_id=self._me.broker,
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=BESIDE_ANOTHER if self._in_flight else ALONE,
            max_bytes=settings.replica_fetch_response_max_bytes,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=wanted,
            forgotten=_by_topic((key.topic_id, key.partition) for key in forgotten),
        )
        self._in_flight.append(self._requests)
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        self._lane.send([frame])

    def _wanted(self, dirty: Iterable[QuorumMember]) -> Iterable[tuple[Id, list[PartitionWanted]]]:
        """The fetches to send, by topic, in their current state."""
        max_bytes = self._settings.replica_fetch_max_bytes
        wanted = []
        for member in dirty:
            asked, fetch = self.members[member], member.replica.fetch()
            if fetch is None or fetch.to.broker != self.broker:
                continue
            if asked.fetch is None and self._epoch != OPENING:
                self._removed[member.key] = None  # the leader must start over: its earlier answers were dropped
            if asked.fetch is None or not _same_log(asked.fetch, fetch):
                asked.request = self._requests  # otherwise an answer to the last request is valid for this fetch, too
            elif self._in_flight and asked.fetch != fetch:
                self._durable[member] = None  # it can wait, and must not make the leader send records twice
                continue
            asked.fetch = fetch
            one = PartitionWanted(
                member.key.partition,
                fetch.epoch,
                fetch.end,
                max_bytes,
                fetch.last_epoch,
                self._me.directory,
                fetch.durable,
            )
            wanted.append((member.key.topic_id, one))
        return _by_topic(wanted)

    # Answers

    def answered(self, frame: memoryview) -> None:
        """Process an answer; WireError if it is malformed or unexpected."""
        head = read_fetched(frame)
        self.heard_at = self._owner.clock.monotonic()
        if not self._in_flight or self._in_flight.popleft() != head.correlation_id:
            raise WireError(f"an answer to fetch {head.correlation_id}, which is not due")
        self._answering, self._awaits_sync = True, False
        self._small_answer = len(frame) <= SYNC_AWAITED_MAX_BYTES
        try:
            if head.correlation_id >= self._session_since:
                self._process(head, head.correlation_id)
        finally:
            self._answering = False
        if self._awaits_sync and not self._urgent:
            self._wait_for_sync()
        elif self.members and (not self._in_flight or self._urgent):
            self._send()

    def _wait_for_sync(self) -> None:
        if self._sync_timer is None:
            self._sync_timer = asyncio.get_running_loop().call_later(SYNC_WAIT_MAX_S, self._waited)

    def _waited(self) -> None:
        self._urgent = True
        self._send()

    def _stop_waiting(self) -> None:
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None

    def _process(self, head: FetchedHead, request: int) -> None:
        if head.error:
            self._start_over()
            return
        if self._session == 0:
            self._session = head.session_id
        for topic_id, partitions in head.topics:
            for fetched in partitions:
                member = self._by_key.get(TopicPartition(topic_id, fetched.partition))
                asked = None if member is None else self.members.get(member)
                if member is not None and asked is not None and asked.fetch is not None and asked.request <= request:
                    self._process_partition(member, asked, asked.fetch, fetched)

    def _process_partition(self, member: QuorumMember, asked: Asked, fetch: Fetched, fetched: PartitionFetched) -> None:
        served = fetched.error == 0
        if fetched.error == Error.OFFSET_OUT_OF_RANGE:
            member.restart_log_at(fetched.log_start)
            return
        if not served and fetched.leader_epoch < 0:  # it does not know the partition (yet, or any longer)
            self._owner.fetch_again(member)
            return
        if served and fetched.horizon > member.log.horizon and not member.take_horizon(fetched.horizon):
            return
        answer = FetchAnswer(
            sender=fetch.to,
            to=self._me,
            epoch=fetch.epoch if served else Epoch(fetched.leader_epoch),
            leader=fetch.to if served else _voter(member, fetched.leader),
            end=fetch.end,
            last_epoch=fetch.last_epoch,
            served=served,
            high_watermark=Offset(fetched.high_watermark),
            diverging=None if fetched.diverging is None else EpochEnd(*fetched.diverging),
            begin_anew=fetched.begin_anew,
            pulse=asked,
        )
        records = fetched.records
        member.step(answer, memoryview(records) if records else None)
        if served:
            if fetched.diverging is None:
                member.note_leader_end(fetched.log_end)
            self._owner.answer_processed(member, fetched, self)
            return
        asked.fetch = None  # so that the same fetch is sent again, should that broker become the leader
        self._owner.fetch_again(member)
        if member.leader == self.broker and member.replica.epoch == fetched.leader_epoch:
            # it was the leader of this epoch, and has resigned
            self._owner.step_in_turn(member, LeaderDisconnected(self.broker, self._others_live()))

    def _others_live(self) -> tuple[BrokerId, ...]:
        return tuple(broker for broker in self._owner.live if broker != self.broker)

    # The lane

    def lane_up(self) -> None:
        self._in_flight.clear()
        self._start_over()
        self._send()

    def lane_down(self) -> None:
        live = self._others_live()
        for member in list(self.members):
            self._owner.step_in_turn(member, LeaderDisconnected(self.broker, live))

    def _start_over(self) -> None:
        self._session, self._epoch = 0, OPENING
        self._session_since = self._requests + 1
        self._removed.clear()
        self._durable.clear()
        for member, asked in self.members.items():
            asked.fetch = None
            self._dirty[member] = None

    def check_alive(self, now: float, timeout_s: float) -> None:
        """After `timeout_s` without an answer, tick every partition of the session."""
        if now - self.heard_at >= timeout_s:
            for member in list(self.members):
                self._owner.step_in_turn(member, Tick())


def _same_log(one: Fetched, other: Fetched) -> bool:
    """Whether they differ at most in the durable offset, which a `Synced` message reports sooner."""
    return (one.end, one.last_epoch, one.epoch, one.to) == (other.end, other.last_epoch, other.epoch, other.to)


def _is_syncing(sent: Fetched | None, fetch: Fetched) -> bool:
    """Whether the log has grown since the fetch that was sent, and an fsync of what was appended is under way."""
    return sent is not None and (sent.epoch, sent.to) == (fetch.epoch, fetch.to) and 0 <= fetch.durable < fetch.end


def _take_first(members: dict[QuorumMember, None], count: int) -> dict[QuorumMember, None]:
    """Remove and return the first `count` members."""
    taken = dict.fromkeys(islice(members, count))
    for member in taken:
        del members[member]
    return taken


def _voter(member: QuorumMember, broker: int) -> Voter | None:
    """The leader that an answer names. If it is not a voter known here yet, its directory id is not known either."""
    known = (voter for voter in (member.replica.me, *member.replica.voters) if voter.broker == broker)
    return next(known, None if broker < 0 else Voter(BrokerId(broker), NO_ID))


def _by_topic(pairs: Iterable[tuple[Id, T]]) -> list[tuple[Id, list[T]]]:
    topics: dict[Id, list[T]] = {}
    for topic_id, one in pairs:
        topics.setdefault(topic_id, []).append(one)
    return list(topics.items())
