"""Fetch: read record batches from partitions that this broker leads or follows, unchanged from the log.

In a fetch session (KIP-227), a request names only partitions that changed since the last request, and a response leaves
out partitions with nothing new. Followers serve clients from version 11 on (KIP-392).
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from tailrace.broker.services.reader import FetchOptions, Refused
from tailrace.broker.services.time_slices import MANY_AT_ONCE
from tailrace.doors.kafka.call import Answer, WireCall
from tailrace.doors.kafka.fetch_sessions import OPENING, Session
from tailrace.doors.kafka.handlers.records.leader_endpoints import endpoints_of
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault
from tailrace.model.ids import Id
from tailrace.wire.faults import error_of
from tailrace.wire.hot_fetch import (
    FIRST_BY_TOPIC_ID,
    FetchHead,
    PartitionFetched,
    PartitionWanted,
    read_fetch,
    write_fetched,
)
from tailrace.wire.primitives import WireError

FIRST_FROM_FOLLOWERS: Final = 11
READ_COMMITTED: Final = 1

TopicsFetched = dict[str | Id, list[PartitionFetched]]


def fetch(call: WireCall) -> Answer | None:
    head = read_fetch(call.frame, call.at, call.version)
    if head.replica_id >= 0:
        raise WireError(f"Fetch as replica {head.replica_id}: replicas fetch on the peer port only")
    try:
        session = call.connection.door.fetch_sessions.session_for(head, by_id=call.version >= FIRST_BY_TOPIC_ID)
    except Fault as fault:
        return write_fetched(call.correlation_id, call.version, error_of(fault), 0, ())
    return FetchRequest(call, head, session).begin()


class FetchRequest:
    """One Fetch request: a `Fetch` of the reader, and the fetch session."""

    __slots__ = ("_call", "_fetch", "_session", "_whole")

    def __init__(self, call: WireCall, head: FetchHead, session: Session | None) -> None:
        self._call = call
        self._session = session
        self._whole = session is None or head.session_epoch == OPENING  # a full response: unchanged partitions, too
        wanted = list(_once(head) if session is None else session.wanted())
        if len(wanted) > MANY_AT_ONCE:
            require_few(len(wanted))
            call.connection.time_slice.is_slow = True
        options = FetchOptions(
            committed=head.isolation == READ_COMMITTED,
            from_followers=call.version >= FIRST_FROM_FOLLOWERS,
            min_bytes=head.min_bytes,
            max_bytes=min(head.max_bytes, call.connection.door.answer_max_bytes),
            max_wait_ms=head.max_wait_ms,
            rack=head.rack,
        )
        self._fetch = call.services.reader.fetch(call.caller, wanted, options, call.connection)

    def begin(self) -> Answer | None:
        if self._fetch.begin(self._reply):
            return self._answer()
        self._call.abandoned = self._fetch.cancel
        return None

    def _reply(self) -> None:
        self._call.reply(self._answer())

    def _answer(self) -> Answer:
        call, session = self._call, self._session
        leaders: list[int] = []
        topics: TopicsFetched = {
            topic: [one if isinstance(one, PartitionFetched) else self._refused(topic, one, leaders) for one in results]
            for topic, results in self._fetch.results.items()
        }
        if session is not None:
            topics = self._changed(session, topics)
        if self._fetch.reads_ahead:
            asyncio.get_running_loop().call_soon(self._read_ahead)
        session_id = 0 if session is None else session.id
        endpoints = endpoints_of(call, leaders) if leaders else []
        return write_fetched(call.correlation_id, call.version, 0, session_id, list(topics.items()), endpoints)

    def _refused(self, topic: str | Id, refused: Refused, leaders: list[int]) -> PartitionFetched:
        number, fault, state = refused
        if state is not None:
            return state._replace(error=error_of(fault))
        leader, epoch = self._call.services.topics.leader_hint(topic, number, fault)
        if leader >= 0:
            leaders.append(leader)
        return PartitionFetched(number, error_of(fault), leader=leader, leader_epoch=epoch)

    def _read_ahead(self) -> None:
        """Called in the iteration of the event loop after the one in which the response was sent."""
        try:
            if self._call.connection.has_sent_all:
                self._fetch.read_ahead()
        except Exception:
            self._call.connection.failed("reading ahead of a Fetch")

    def _changed(self, session: Session, topics: TopicsFetched) -> TopicsFetched:
        """The partitions of a session that have something new for the client."""
        changed_topics: TopicsFetched = {}
        for topic, answers in topics.items():
            for one in answers:
                cached = session.partitions.get((topic, one.partition))
                if cached is None:
                    continue
                known = (cached.high_watermark, cached.log_start)
                cached.high_watermark, cached.log_start = one.high_watermark, one.log_start
                if one.records:
                    session.rotate((topic, one.partition))
                changed = known != (one.high_watermark, one.log_start)
                if self._whole or changed or one.records or one.error or one.preferred_replica >= 0:
                    changed_topics.setdefault(topic, []).append(one)
        return changed_topics


def _once(head: FetchHead) -> Iterable[tuple[str | Id, PartitionWanted]]:
    """The partitions of a request; of duplicates the last one counts, as in Kafka."""
    wanted = {(topic, one.partition): one for topic, partitions in head.topics for one in partitions}
    return ((topic, one) for (topic, _), one in wanted.items())
