"""Incremental fetch sessions (KIP-227): a consumer names its partitions once, then only what changes.

A session remembers, per partition, where the consumer reads and what it was last told; an answer then leaves out
partitions with nothing new. Each request must carry the next epoch, so that a lost request or answer is noticed.
The cache is bounded: when it is full the session that was silent longest goes, and its client starts anew.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tailrace.model.faults import FetchSessionEpochWrong, FetchSessionUnknown
from tailrace.model.ids import Id
from tailrace.model.limits import fetch_sessions_max
from tailrace.ports import Clock, Random
from tailrace.wire.hot_fetch import FetchHead, PartitionWanted

sessionless: Final = -1  # epoch of a request that wants no session
opening: Final = 0  # epoch of a request that wants a new one
epoch_max: Final = 2**31 - 1

Key = tuple[str | Id, int]


@dataclass(slots=True)
class Told:
    """One partition of a session: what is wanted, and what the last answer said."""

    wanted: PartitionWanted
    high_watermark: int = -2
    log_start: int = -2


@dataclass(slots=True)
class Session:
    id: int
    epoch: int = 1  # of the next request
    partitions: "OrderedDict[Key, Told]" = field(default_factory=OrderedDict)

    def update(self, request: FetchHead) -> None:
        for topic, partitions in request.topics:
            for wanted in partitions:
                told = self.partitions.get((topic, wanted.partition))
                if told is None:
                    self.partitions[topic, wanted.partition] = Told(wanted)
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

    def __len__(self) -> int:
        return len(self._sessions)

    def session_for(self, request: FetchHead) -> Session | None:
        """The session a request belongs to, brought up to date; None: it wants none. Raises the session faults."""
        if request.session_epoch == sessionless:
            self._sessions.pop(request.session_id, None)
            return None
        if request.session_epoch == opening:
            self._sessions.pop(request.session_id, None)
            return self._open(request)
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionUnknown(f"there is no fetch session {request.session_id}")
        if request.session_epoch != session.epoch:
            raise FetchSessionEpochWrong(
                f"fetch session {session.id} expects epoch {session.epoch}, not {request.session_epoch}"
            )
        session.epoch = 1 if session.epoch == epoch_max else session.epoch + 1
        session.update(request)
        self._sessions.move_to_end(session.id)
        return session

    def _open(self, request: FetchHead) -> Session:
        if len(self._sessions) >= fetch_sessions_max:
            self._sessions.popitem(last=False)
        number = 0
        while number == 0 or number in self._sessions:
            number = self._random.below(2**31 - 1)
        session = self._sessions[number] = Session(number)
        session.update(request)
        return session
