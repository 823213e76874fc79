"""Share sessions (KIP-932): a member of a share group names its partitions once, then only those that change.

A session belongs to its connection: when that ends, the records that the member holds are released at once. Each
request must carry the next epoch, so that only one is under way at a time. A session that is opened anew keeps what
its member had acquired before.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from tailrace.broker.services.queues import Queues, ShareMember
from tailrace.model.caller import Caller
from tailrace.model.faults import (
    InvalidRequest,
    InvalidShareSessionEpoch,
    ShareSessionLimitReached,
    ShareSessionNotFound,
)
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import SHARE_SESSION_PARTITIONS_MAX

OPENING: Final = 0  # epoch of a request that opens a session
CLOSING: Final = -1
EPOCH_MAX: Final = 2**31 - 1


class ShareSession:
    def __init__(self, who: Caller, member: ShareMember, connection: int) -> None:
        self.who = who
        self.member = member
        self.connection = connection
        self.epoch = 1  # of the next request
        self.partitions: OrderedDict[TopicPartition, None] = OrderedDict()
        self.read: dict[TopicPartition, None] = {}  # also those that were forgotten: it may hold records of them
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def add(self, places: Iterable[TopicPartition]) -> None:
        for place in places:
            if place not in self.read and len(self.read) >= SHARE_SESSION_PARTITIONS_MAX:
                self.read = dict(self.partitions)  # what it holds of the others is released when its locks end
                if len(self.read) >= SHARE_SESSION_PARTITIONS_MAX:
                    raise InvalidRequest(f"a share session has at most {SHARE_SESSION_PARTITIONS_MAX} partitions")
            self.partitions[place] = self.read[place] = None

    def rotate(self, place: TopicPartition) -> None:
        """A partition that returned records comes last in the next request, so that the others get their turn."""
        self.partitions.move_to_end(place)


class ShareSessions:
    def __init__(self, queues: Queues, sessions_max: int) -> None:
        self._queues = queues
        self._sessions_max = sessions_max
        self._sessions: dict[ShareMember, ShareSession] = {}
        self._by_connection: dict[int, dict[ShareMember, None]] = {}

    def is_open(self, member: ShareMember) -> bool:
        return member in self._sessions

    def session_for(self, who: Caller, member: ShareMember, epoch: int, connection: int) -> ShareSession:
        """The session that a request belongs to; a new one if its epoch is 0."""
        if epoch == OPENING:
            return self._open(who, member, connection)
        session = self._sessions.get(member)
        if session is None:
            raise ShareSessionNotFound(f"member {member.id} of share group {member.group} has no share session here")
        if epoch == CLOSING:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch(f"share session epoch {epoch} is not the next one, {session.epoch}")
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return session

    def _open(self, who: Caller, member: ShareMember, connection: int) -> ShareSession:
        known = self._sessions.get(member)
        if known is None and len(self._sessions) >= self._sessions_max:
            raise ShareSessionLimitReached(
                f"{self._sessions_max} share sessions are open (group.share.max.share.sessions)"
            )
        session = ShareSession(who, member, connection)
        if known is not None:
            session.read.update(known.read)  # what it holds of them is released with this session
            self._forget(known)
        self._sessions[member] = session
        self._by_connection.setdefault(connection, {})[member] = None
        return session

    def close(self, session: ShareSession) -> None:
        """End a session, and release what its member holds."""
        if self._sessions.get(session.member) is session:
            self._forget(session)
            self._queues.leave(session.who, session.member, list(session.read))

    def connection_lost(self, connection: int) -> None:
        for member in self._by_connection.pop(connection, {}):
            self.close(self._sessions[member])

    def _forget(self, session: ShareSession) -> None:
        del self._sessions[session.member]
        of_connection = self._by_connection.get(session.connection)
        if of_connection is not None:
            of_connection.pop(session.member, None)
            if not of_connection:
                del self._by_connection[session.connection]
        if not session.ended.done():
            session.ended.set_result(None)
