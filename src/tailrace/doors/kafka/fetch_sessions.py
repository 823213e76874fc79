"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only those that change.

A session remembers, per partition, what the consumer fetches and the offsets of the last response; a response leaves
out partitions with nothing new. Each request must carry the next epoch, so that a lost request or response is noticed.
The number of sessions and of their partitions is limited. At the limit, the session that was idle longest is evicted,
if it was idle for long, and its client opens a new one. If none was, the new request is served without a session, as
the protocol allows: so a client cannot evict others by sending many requests. A name that is too long for a topic is
not stored.

A session uses topic names or topic ids, for its whole life: a response has either of them, not both. A client that
learns the ids later opens a new session.
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

SESSIONLESS: Final = -1  # epoch of a request without a session
OPENING: Final = 0  # epoch of a request that opens a session
EPOCH_MAX: Final = 2**31 - 1

Key = tuple[str | Id, int]


@dataclass(slots=True)
class CachedPartition:
    """One partition of a session: what the client fetches, and the offsets of the last response."""

    wanted: PartitionWanted
    high_watermark: int = -2
    log_start: int = -2


@dataclass(slots=True)
class Session:
    id: int
    used_at: float
    by_id: bool  # topics are named by id, not by name
    epoch: int = 1  # of the next request
    partitions: "OrderedDict[Key, CachedPartition]" = field(default_factory=OrderedDict)

    def update(self, request: FetchHead) -> None:
        for topic, partitions in request.topics:
            for wanted in partitions:
                cached = self.partitions.get((topic, wanted.partition))
                if cached is None:
                    self.partitions[topic, wanted.partition] = CachedPartition(wanted)
                else:
                    cached.wanted = wanted
        for topic, numbers in request.forgotten:
            for number in numbers:
                self.partitions.pop((topic, number), None)

    def wanted(self) -> Iterable[tuple[str | Id, PartitionWanted]]:
        for (topic, _), cached in self.partitions.items():
            yield topic, cached.wanted

    def rotate(self, key: Key) -> None:
        """A partition that returned records comes last in the next response, so that the others get their turn."""
        self.partitions.move_to_end(key)


class FetchSessions:
    def __init__(self, random: Random, clock: Clock) -> None:
        self._random = random
        self._clock = clock
        self._sessions: OrderedDict[int, Session] = OrderedDict()  # the one that was idle longest first
        self._partitions = 0  # in all sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def session_for(self, request: FetchHead, *, by_id: bool) -> Session | None:
        """The session of a request, updated by it; None: the request has none. Raises the session faults."""
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
            raise FetchSessionNamesMixed(f"fetch session {session.id} uses topic {'ids' if session.by_id else 'names'}")
        if request.session_epoch != session.epoch:
            raise FetchSessionEpochWrong(
                f"fetch session {session.id} expects epoch {session.epoch}, not {request.session_epoch}"
            )
        self._sessions.move_to_end(session.id)
        session.used_at = self._clock.monotonic()
        if not self._has_room_for(request, session):
            self._forget(session.id)
            raise FetchSessionUnknown(f"fetch session {session.id} was closed: the session cache is full")
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        self._update(session, request)
        return session

    def _open(self, request: FetchHead, by_id: bool) -> Session | None:
        if len(self._sessions) >= FETCH_SESSIONS_MAX and not self._evict_idle():
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
        """Whether the partitions of a request fit into the cache; evicts sessions that were idle for long."""
        if any(len(topic) > TOPIC_NAME_MAX_CHARS for topic, _ in request.topics):
            return False
        known = {} if session is None else session.partitions
        named = sum((topic, one.partition) not in known for topic, partitions in request.topics for one in partitions)
        while self._partitions + named > FETCH_SESSION_PARTITIONS_MAX:
            if not self._evict_idle():
                return False
        return True

    def _evict_idle(self) -> bool:
        """Evict the session that was idle longest, if it was idle for long."""
        number, oldest = next(iter(self._sessions.items()), (0, None))
        if oldest is None or self._clock.monotonic() - oldest.used_at < FETCH_SESSION_KEPT_S:
            return False
        self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is not None:
            self._partitions -= len(session.partitions)
