"""A leader's side of a peer's fetch session (KIP-227): which partitions it follows here, and what it has been told.

Partitions say when they have news, and are then *dirty*: an answer looks at those and at the ones that its request
names, at no others. New records are answered at once, with all else that is dirty in this turn of the loop; news of a
high watermark alone waits a little, as more is likely to come. When there is nothing to say the request is parked,
until there is, its time is up, or the next request comes.

A partition that was sent records is left alone until the follower names it again: it says then how far it has come.

A request may have been on its way for long, and be read by a broker that stood still meanwhile. So that somebody still
follows is known of the time of the answer that it must have had before it asked (`confirmed_at`), not of that at which
its request was read (`heard_at`): requests and answers are counted.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from math import inf
from typing import Any, Final, NamedTuple, Protocol

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.peers import PeerConnection
from tailrace.broker.replication.follower_session import ALONE, IN_FLIGHT_MAX
from tailrace.broker.replication.session_partition import SessionPartition
from tailrace.model.faults import FetchSessionEpochWrong
from tailrace.model.ids import BrokerId, Epoch, Id, Offset, TopicPartition
from tailrace.model.limits import FETCH_NAMED_MAX
from tailrace.ports.disk import Buffer
from tailrace.raft.messages import FetchAnswer, Fetched
from tailrace.raft.replica import Voter
from tailrace.wire.errors import Error
from tailrace.wire.hot_fetch import FetchHead, PartitionFetched, PartitionWanted, read_fetch, write_fetched

COMMIT_LINGER_S: Final = 0.005
VERSION: Final = 18
OPENING: Final = 0


class Parked(NamedTuple):
    correlation_id: int
    max_bytes: int
    timer: asyncio.TimerHandle


class Hall(Protocol):
    """What a session needs of all sessions' owner."""

    me: Voter

    def now(self) -> float: ...

    def find(self, key: TopicPartition) -> QuorumMember | None: ...

    def left(self, member: QuorumMember) -> None:
        """A follower's pulse stands still from now on: the leader has to look at its quorum in time."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class LeaderSession:
    def __init__(self, hall: Hall, peer: PeerConnection) -> None:
        self._hall = hall
        self._peer = peer
        self._me = hall.me
        self.broker: BrokerId = peer.broker
        self.heard_at = hall.now()
        self.confirmed_at = -inf
        self._requests = 0  # taken
        self._answers = 0  # sent, and when the last of them were
        self._answered_at: deque[float] = deque(maxlen=2 * IN_FLIGHT_MAX)
        self.open = True
        self.told: dict[TopicPartition, SessionPartition] = {}
        self._dirty: dict[SessionPartition, None] = {}  # has records, or something else that cannot wait
        self._lazy: dict[SessionPartition, None] = {}  # has another high watermark
        self._epoch = OPENING
        self._parked: Parked | None = None
        self._scheduled = False
        self._linger: asyncio.TimerHandle | None = None
        self._reading = False  # an answer waits for the disk
        self._later: list[Callable[[], None]] = []  # requests that came meanwhile

    # Requests

    def fetch(self, frame: memoryview, at: int, correlation_id: int) -> None:
        """One Fetch; WireError when it makes no sense."""
        head = read_fetch(frame, at, VERSION)
        self.heard_at = self._hall.now()
        if self._reading:
            self._later.append(lambda: self._take(head, correlation_id))
        else:
            self._take(head, correlation_id)

    def _take(self, head: FetchHead, correlation_id: int) -> None:
        self.heard_at = self._hall.now()
        self._requests += 1
        if self._parked is not None:
            self._answer()
        try:
            self._follow(head)
        except FetchSessionEpochWrong:
            self._put(write_fetched(correlation_id, VERSION, Error.INVALID_FETCH_SESSION_EPOCH, 0, ()))
            return
        for topic_id, numbers in head.forgotten:
            for number in numbers:
                self._leave(TopicPartition(_id(topic_id), number))
        unknown = self._name(head)
        self._confirm(head)
        wait_s = max(head.max_wait_ms, 0) / 1000
        timer = asyncio.get_running_loop().call_later(wait_s, self._answer)
        self._parked = Parked(correlation_id, head.max_bytes, timer)
        if unknown or self._dirty:
            self._answer(unknown)
        elif self._lazy:
            self._linger_on()

    def _confirm(self, head: FetchHead) -> None:
        """Whoever asks, and follows still, had all answers to what it asked before, but for one that was in flight."""
        had = self._requests - (1 if head.min_bytes == ALONE else IN_FLIGHT_MAX)
        since = self._answers - had
        if 0 <= since < len(self._answered_at):
            self.confirmed_at = self._answered_at[-1 - since]

    def _follow(self, head: FetchHead) -> None:
        if head.session_epoch == OPENING:
            self._leave_all()
            self._epoch = OPENING
        elif head.session_epoch != self._epoch:
            raise FetchSessionEpochWrong(f"expected {self._epoch}, not {head.session_epoch}")
        self._epoch += 1

    def _name(self, head: FetchHead) -> list[tuple[Id, PartitionFetched]]:
        """Take in what was named; answers about partitions that are not here."""
        unknown = []
        for topic_id, partitions in head.topics:
            for wanted in partitions:
                key = TopicPartition(_id(topic_id), wanted.partition)
                member = self._hall.find(key)
                if member is None:
                    self._leave(key)
                    unknown.append((key.topic_id, PartitionFetched(wanted.partition, Error.UNKNOWN_TOPIC_ID)))
                else:
                    self._name_one(key, member, wanted)
        return unknown

    def _name_one(self, key: TopicPartition, member: QuorumMember, wanted: PartitionWanted) -> None:
        told = self.told.get(key)
        if told is None or told.member is not member:
            self._leave(key)
            told = self.told[key] = SessionPartition(self, member, wanted)
            member.sessions[self] = None
        told.named(wanted)
        member.stir()
        peer = Voter(broker=self.broker, directory=wanted.directory)
        member.step(
            Fetched(
                peer=peer,
                to=self._me,
                epoch=Epoch(wanted.leader_epoch),
                end=Offset(wanted.offset),
                last_epoch=wanted.last_epoch,
                durable=Offset(wanted.durable),
                pulse=told,
            )
        )
        if told.has_news:
            self._dirty[told] = None

    def take_answer(self, member: QuorumMember, answer: FetchAnswer) -> None:
        """What the machine says to the fetch that was named last; it may have had to store an epoch first."""
        told = self.told.get(member.key)
        if told is None:
            return
        told.answer = answer
        if not answer.served or answer.diverging is not None:
            self._dirty[told] = None
            self._soon()

    # News

    def grew(self, member: QuorumMember) -> None:
        told = self.told.get(member.key)
        if told is not None and not told.sent:
            self._dirty[told] = None
            self._soon()

    def committed(self, member: QuorumMember) -> None:
        told = self.told.get(member.key)
        if told is not None and not told.sent:
            self._lazy[told] = None
            self._linger_on()

    def deposed(self, member: QuorumMember) -> None:
        told = self.told.get(member.key)
        if told is not None:
            self._dirty[told] = None
            self._soon()

    def _soon(self) -> None:
        if not self._scheduled and self._parked is not None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._answer_scheduled)

    def _answer_scheduled(self) -> None:
        self._scheduled = False
        if self._dirty:
            self._answer()

    def _linger_on(self) -> None:
        if self._linger is None and self._parked is not None:
            self._linger = asyncio.get_running_loop().call_later(COMMIT_LINGER_S, self._lingered)

    def _lingered(self) -> None:
        self._linger = None
        if self._lazy:
            self._answer()

    # Answers

    def _answer(self, unknown: list[tuple[Id, PartitionFetched]] | None = None) -> None:
        parked, self._parked = self._parked, None
        if parked is None or not self.open:
            return
        parked.timer.cancel()
        dirty = self._dirty | self._lazy
        self._dirty, self._lazy = {}, {}
        topics: dict[str | Id, list[PartitionFetched]] = {}
        for topic_id, one in unknown or ():
            topics.setdefault(topic_id, []).append(one)
        cold: list[tuple[SessionPartition, list[PartitionFetched], int, int]] = []
        room, left = parked.max_bytes, FETCH_NAMED_MAX
        for told in dirty:
            if told.sent:
                continue  # it has to say first what it made of that
            if room <= 0 or left <= 0:
                self._dirty[told] = None  # its turn comes with the next request
                continue
            left -= 1
            answers = topics.setdefault(told.member.key.topic_id, [])
            fetched = told.look(room)
            if fetched is None:
                max_bytes = min(told.wanted.max_bytes, room)
                cold.append((told, answers, len(answers), max_bytes))
                room -= max_bytes
                answers.append(PartitionFetched(told.wanted.partition, 0))
            else:
                answers.append(fetched)
                room -= len(fetched.records)
        if cold:
            self._reading = True
            self._hall.spawn(self._read_cold(parked.correlation_id, topics, cold))
        else:
            self._send(parked.correlation_id, topics)

    def _send(self, correlation_id: int, topics: dict[str | Id, list[PartitionFetched]]) -> None:
        if self.open:
            self._put(write_fetched(correlation_id, VERSION, 0, 1, list(topics.items())))

    def _put(self, frame: Sequence[Buffer]) -> None:
        self._answers += 1
        self._answered_at.append(self._hall.now())
        self._peer.send(frame)

    async def _read_cold(
        self,
        correlation_id: int,
        topics: dict[str | Id, list[PartitionFetched]],
        cold: list[tuple[SessionPartition, list[PartitionFetched], int, int]],
    ) -> None:
        for told, answers, place, max_bytes in cold:
            answers[place] = await told.look_off_loop(max_bytes)
        self._send(correlation_id, topics)
        self._reading = False
        while self._later and not self._reading:
            self._later.pop(0)()

    def look(self, now: float, timeout_s: float) -> None:
        """When nothing was heard for long, let the leaders look at their quorums."""
        if timeout_s <= now - self.heard_at < 2 * timeout_s:  # later news of others is told by their sessions
            for told in list(self.told.values()):
                told.member.tick()
                told.member.stir()

    # The end

    def _leave(self, key: TopicPartition) -> None:
        told = self.told.pop(key, None)
        if told is not None:
            told.leave()
            told.member.sessions.pop(self, None)
            self._dirty.pop(told, None)
            self._lazy.pop(told, None)
            self._hall.left(told.member)

    def _leave_all(self) -> None:
        for key in list(self.told):
            self._leave(key)

    def close(self) -> None:
        """The connection is gone. Its partitions are let go, whose leaders will miss its pulse."""
        self.open = False
        if self._parked is not None:
            self._parked.timer.cancel()
            self._parked = None
        if self._linger is not None:
            self._linger.cancel()
        self._later.clear()
        self._leave_all()


def _id(topic: str | Id) -> Id:
    assert not isinstance(topic, str)
    return topic
