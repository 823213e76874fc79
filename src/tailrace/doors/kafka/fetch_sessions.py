"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

A session remembers, per partition, where the consumer reads and what it was last told; an answer then leaves out
partitions with nothing new. Each request must carry the next epoch, so that a lost request or answer is noticed.
The cache is bounded, in sessions and in partitions: when it is full, sessions that have been silent for long make room,
and their clients start anew. Where none has been, the newcomer is served without a session, as the protocol allows; so
nobody can push others out by asking often. A name that is too long for any topic is not kept for later.

A session names topics by name or by id, and goes on as it began: an answer can say either, not both. A client that
learns the ids later begins anew.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tailrace.model.faults import FetchSessionEpochWrong, FetchSessionNamesMixed, FetchSessionUnknown
from tailrace.model.ids import Id
from tailrace.model.limits import (
    FETCH_SESSION_KEPT_S,
    FETCH_SESSION_PARTITIONS_MAX,
    FETCH_SESSIONS_MAX,
    TOPIC_NAME_MAX_CHARS,
)
from tailrace.ports import Clock, Random
from tailrace.wire.hot_fetch import FetchHead, PartitionWanted

SESSIONLESS: Final = -1  # epoch of a request that wants no session
OPENING: Final = 0  # epoch of a request that wants a new one
EPOCH_MAX: Final = 2**31 - 1

Key = tuple[str | Id, int]


@dataclass(slots=True)
class CachedPartition:
    """One partition of a session: what is wanted, and what the last answer said."""

    wanted: PartitionWanted
    high_watermark: int = -2
    log_start: int = -2


@dataclass(slots=True)
class Session:
    id: int
    used_at: float
    by_id: bool  # how topics are named
    epoch: int = 1  # of the next request
    partitions: "OrderedDict[Key, CachedPartition]" = field(default_factory=OrderedDict)

    def update(self, request: FetchHead) -> None:
        for topic, partitions in request.topics:
            for wanted in partitions:
                told = self.partitions.get((topic, wanted.partition))
                if told is None:
                    self.partitions[topic, wanted.partition] = CachedPartition(wanted)
                else:
                    told.wanted = wanted
        for topic, numbers in request.forgotten:
            for number in numbers:
                self.partitions.pop((topic, number), None)

    def wanted(self) -> Iterable[tuple[str | Id, PartitionWanted]]:
        for (topic, _), told in self.partitions.items():
            yield topic, told.wanted

    def rotate(self, key: Key) -> None:
        """A partition that gave records goes last next time, so that the others get their turn."""
        self.partitions.move_to_end(key)


class FetchSessions:
    def __init__(self, random: Random, clock: Clock) -> None:
        self._random = random
        self._clock = clock
        self._sessions: OrderedDict[int, Session] = OrderedDict()  # silent longest first
        self._partitions = 0  # in all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def session_for(self, request: FetchHead, *, by_id: bool) -> Session | None:
        """The session a request belongs to, brought up to date; None: it wants none. Raises the session faults."""
        if request.session_epoch == SESSIONLESS:
            self._forget(request.session_id)
            return None
        if request.session_epoch == OPENING:
            self._forget(request.session_id)
            return self._open(request, by_id)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionUnknown(f"there is no fetch session {request.session_id}")
        if session.by_id != by_id:
            self._forget(session.id)
            raise FetchSessionNamesMixed(f"fetch session {session.id} began with topics' names or ids, not with both")
        if request.session_epoch != session.epoch:
            raise FetchSessionEpochWrong(
                f"fetch session {session.id} expects epoch {session.epoch}, not {request.session_epoch}"
            )
        self._sessions.move_to_end(session.id)
        session.used_at = self._clock.monotonic()
        if not self._has_room_for(request, session):
            self._forget(session.id)
            raise FetchSessionUnknown(f"fetch session {session.id} has grown too large")
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        self._update(session, request)
        return session

    def _open(self, request: FetchHead, by_id: bool) -> Session | None:
        if len(self._sessions) >= FETCH_SESSIONS_MAX and not self._forget_silent():
            return None
        if not self._has_room_for(request):
            return None
        number = 0
        while number == 0 or number in self._sessions:
            number = self._random.below(2**31 - 1)
        session = self._sessions[number] = Session(number, self._clock.monotonic(), by_id)
        self._update(session, request)
        return session

    def _update(self, session: Session, request: FetchHead) -> None:
        before = len(session.partitions)
        session.update(request)
        self._partitions += len(session.partitions) - before

    def _has_room_for(self, request: FetchHead, session: Session | None = None) -> bool:
        """Whether all that a request names could be kept, once long-silent sessions have made room."""
        if any(len(topic) > TOPIC_NAME_MAX_CHARS for topic, _ in request.topics):
            return False
        known = {} if session is None else session.partitions
        named = sum((topic, one.partition) not in known for topic, partitions in request.topics for one in partitions)
        while self._partitions + named > FETCH_SESSION_PARTITIONS_MAX:
            if not self._forget_silent():
                return False
        return True

    def _forget_silent(self) -> bool:
        """Let go of the session that was silent longest, if that was long."""
        number, oldest = next(iter(self._sessions.items()), (0, None))
        if oldest is None or self._clock.monotonic() - oldest.used_at < FETCH_SESSION_KEPT_S:
            return False
        self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            self._partitions -= len(session.partitions)
