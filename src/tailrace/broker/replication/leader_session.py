"""The leader's side of a follower's fetch session (KIP-227): which partitions it fetches here, what it was last sent.

A partition with something to send becomes *dirty*: an answer contains the dirty partitions and those in its request, no
others. New records are sent at once, with everything else that is dirty in this turn of the loop; a new high watermark
alone waits for `COMMIT_LINGER_S`, as records are likely to follow. When there is nothing to send the request is parked
until there is, its max wait is over, or the next request arrives.

After records were sent for a partition, nothing more is sent for it until the follower fetches it again, with its new
offset.

A request may have been in flight for long, and be read late by a broker that was paused. So the time at which a
follower is known to have been following is the time of the last answer that it must have received before it sent the
request (`confirmed_at`), not the time at which the request was read (`heard_at`). Requests and answers are counted to
find that answer.
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


class LeaderSessions(Protocol):
    """The owner of all leader sessions, as one session needs it."""

    me: Voter

    def now(self) -> float: ...

    def find(self, key: TopicPartition) -> QuorumMember | None: ...

    def follower_left(self, member: QuorumMember) -> None:
        """A follower has left the session, so its liveness clock stops: the leader must check its quorum in time."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None: ...


class LeaderSession:
    def __init__(self, owner: LeaderSessions, peer: PeerConnection) -> None:
        self._owner = owner
        self._peer = peer
        self._me = owner.me
        self.broker: BrokerId = peer.broker
        self.heard_at = owner.now()
        self.confirmed_at = -inf
        self._requests = 0  # received
        self._answers = 0  # sent
        self._answered_at: deque[float] = deque(maxlen=2 * IN_FLIGHT_MAX)
        self.open = True
        self.partitions: dict[TopicPartition, SessionPartition] = {}
        self._dirty: dict[SessionPartition, None] = {}  # have records, or something else that cannot wait
        self._lazy: dict[SessionPartition, None] = {}  # have only a new high watermark
        self._epoch = OPENING
        self._parked: Parked | None = None
        self._scheduled = False
        self._linger: asyncio.TimerHandle | None = None
        self._reading = False  # an answer is waiting for a disk read
        self._queued: list[Callable[[], None]] = []  # requests that arrived meanwhile

    # Requests

    def fetch(self, frame: memoryview, at: int, correlation_id: int) -> None:
        """Process a Fetch; WireError if it is malformed."""
        head = read_fetch(frame, at, VERSION)
        self.heard_at = self._owner.now()
        if self._reading:
            self._queued.append(lambda: self._process(head, correlation_id))
        else:
            self._process(head, correlation_id)

    def _process(self, head: FetchHead, correlation_id: int) -> None:
        self.heard_at = self._owner.now()
        self._requests += 1
        if self._parked is not None:
            self._answer()
        try:
            self._check_epoch(head)
        except FetchSessionEpochWrong:
            self._send_frame(write_fetched(correlation_id, VERSION, Error.INVALID_FETCH_SESSION_EPOCH, 0, ()))
            return
        for topic_id, numbers in head.forgotten:
            for number in numbers:
                self._leave(TopicPartition(_id(topic_id), number))
        unknown = self._add_partitions(head)
        self._confirm(head)
        wait_s = max(head.max_wait_ms, 0) / 1000
        timer = asyncio.get_running_loop().call_later(wait_s, self._answer)
        self._parked = Parked(correlation_id, head.max_bytes, timer)
        if unknown or self._dirty:
            self._answer(unknown)
        elif self._lazy:
            self._linger_on()

    def _confirm(self, head: FetchHead) -> None:
        """A new request proves receipt of all earlier answers, except one possibly in flight."""
        received = self._requests - (1 if head.min_bytes == ALONE else IN_FLIGHT_MAX)
        since = self._answers - received
        if 0 <= since < len(self._answered_at):
            self.confirmed_at = self._answered_at[-1 - since]

    def _check_epoch(self, head: FetchHead) -> None:
        if head.session_epoch == OPENING:
            self._leave_all()
            self._epoch = OPENING
        elif head.session_epoch != self._epoch:
            raise FetchSessionEpochWrong(f"expected {self._epoch}, not {head.session_epoch}")
        self._epoch += 1

    def _add_partitions(self, head: FetchHead) -> list[tuple[Id, PartitionFetched]]:
        """Process the partitions of a request; returns the answers for partitions that are not hosted here."""
        unknown = []
        for topic_id, partitions in head.topics:
            for wanted in partitions:
                key = TopicPartition(_id(topic_id), wanted.partition)
                member = self._owner.find(key)
                if member is None:
                    self._leave(key)
                    unknown.append((key.topic_id, PartitionFetched(wanted.partition, Error.UNKNOWN_TOPIC_ID)))
                else:
                    self._add_partition(key, member, wanted)
        return unknown

    def _add_partition(self, key: TopicPartition, member: QuorumMember, wanted: PartitionWanted) -> None:
        partition = self.partitions.get(key)
        if partition is None or partition.member is not member:
            self._leave(key)
            partition = self.partitions[key] = SessionPartition(self, member, wanted)
            member.sessions[self] = None
        partition.requested(wanted)
        member.mark_active()
        member.step(
            Fetched(
                peer=partition.peer,
                to=self._me,
                epoch=Epoch(wanted.leader_epoch),
                end=Offset(wanted.offset),
                last_epoch=wanted.last_epoch,
                durable=Offset(wanted.durable),
                pulse=partition,
            )
        )
        if partition.has_news:
            self._dirty[partition] = None
        elif partition.has_new_high_watermark:
            self._lazy[partition] = None

    def take_answer(self, member: QuorumMember, answer: FetchAnswer) -> None:
        """The state machine's answer to the last fetch; it may come late, because an epoch had to be stored first."""
        partition = self.partitions.get(member.key)
        if partition is None:
            return
        partition.answer = answer
        if not answer.served or answer.diverging is not None:
            self._dirty[partition] = None
            self._soon()

    # Progress of partitions

    def grew(self, member: QuorumMember) -> None:
        partition = self.partitions.get(member.key)
        if partition is not None and not partition.sent:
            self._dirty[partition] = None
            self._soon()

    def committed(self, member: QuorumMember) -> None:
        partition = self.partitions.get(member.key)
        if partition is not None and not partition.sent:
            self._lazy[partition] = None
            self._linger_on()

    def deposed(self, member: QuorumMember) -> None:
        partition = self.partitions.get(member.key)
        if partition is not None:
            self._dirty[partition] = None
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
        for partition in dirty:
            if partition.sent:
                continue  # until the follower fetches it again
            if room <= 0 or left <= 0:
                self._dirty[partition] = None  # goes into the next answer
                continue
            left -= 1
            answers = topics.setdefault(partition.member.key.topic_id, [])
            fetched = partition.next_answer(room)
            if fetched is None:
                max_bytes = min(partition.wanted.max_bytes, room)
                cold.append((partition, answers, len(answers), max_bytes))
                room -= max_bytes
                answers.append(PartitionFetched(partition.wanted.partition, 0))
            else:
                answers.append(fetched)
                room -= len(fetched.records)
        if cold:
            self._reading = True
            self._owner.spawn(self._read_cold(parked.correlation_id, topics, cold))
        else:
            self._send(parked.correlation_id, topics)

    def _send(self, correlation_id: int, topics: dict[str | Id, list[PartitionFetched]]) -> None:
        if self.open:
            self._send_frame(write_fetched(correlation_id, VERSION, 0, 1, list(topics.items())))

    def _send_frame(self, frame: Sequence[Buffer]) -> None:
        self._answers += 1
        self._answered_at.append(self._owner.now())
        self._peer.send(frame)

    async def _read_cold(
        self,
        correlation_id: int,
        topics: dict[str | Id, list[PartitionFetched]],
        cold: list[tuple[SessionPartition, list[PartitionFetched], int, int]],
    ) -> None:
        for partition, answers, place, max_bytes in cold:
            answers[place] = await partition.next_answer_cold(max_bytes)
        self._send(correlation_id, topics)
        self._reading = False
        while self._queued and not self._reading:
            self._queued.pop(0)()

    def check_alive(self, now: float, timeout_s: float) -> None:
        """After `timeout_s` without a request, let the partitions led here check their quorums."""
        if timeout_s <= now - self.heard_at < 2 * timeout_s:  # after that, other followers' sessions trigger the check
            for partition in list(self.partitions.values()):
                partition.member.tick()
                partition.member.mark_active()

    # Leaving and closing

    def _leave(self, key: TopicPartition) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            partition.leave()
            partition.member.sessions.pop(self, None)
            self._dirty.pop(partition, None)
            self._lazy.pop(partition, None)
            self._owner.follower_left(partition.member)

    def _leave_all(self) -> None:
        for key in list(self.partitions):
            self._leave(key)

    def close(self) -> None:
        """The connection is lost: its partitions leave the session, and their leaders check their quorums."""
        self.open = False
        if self._parked is not None:
            self._parked.timer.cancel()
            self._parked = None
        if self._linger is not None:
            self._linger.cancel()
        self._queued.clear()
        self._leave_all()


def _id(topic: str | Id) -> Id:
    assert not isinstance(topic, str)
    return topic
