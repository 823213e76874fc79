"""Fetch: record batches from partitions this broker leads or follows, straight from the log.

A request is answered at once when it finds `min_bytes` or a fault; otherwise it waits, watching its partitions' high
watermarks and leaders, until there is enough, one of them is led by another or its time is up. What the page cache does
not hold is read off the loop first. At least one batch is given even when it is over the limits, so that nobody gets
stuck behind a large one.

A follower serves what it knows to be committed, to clients that know of this (version 11 on, KIP-392). An offset that
is in its log and not known to be committed waits, and is refused as not available when the time is up.

Who reads committed records gets nothing past the last stable offset, and with what it gets the transactions in there
that were aborted: to leave those out is the client's part (KIP-98).
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from tailrace.broker.partitions.fetch_sessions import OPENING, Session
from tailrace.broker.partitions.nearest import nearer_replica
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import Piece
from tailrace.doors.kafka.call import Answer, Call
from tailrace.doors.kafka.handlers.records.leader_hints import endpoints_of, hint_for
from tailrace.doors.kafka.request_limits import require_few
from tailrace.doors.kafka.time_slices import MANY_AT_ONCE
from tailrace.log.log import Read
from tailrace.log.state.aborted_index import Aborted
from tailrace.model.faults import Fault
from tailrace.model.ids import BrokerId, Id
from tailrace.model.limits import FETCH_WAIT_MAX_MS
from tailrace.ports.disk import Buffer
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


def fetch(call: Call) -> Answer | None:
    head = read_fetch(call.frame, call.at, call.version)
    if head.replica_id >= 0:
        raise WireError(f"Fetch in the name of replica {head.replica_id}: replicas fetch on the peers' port only")
    try:
        session = call.node.fetch_sessions.session_for(head, by_id=call.version >= FIRST_BY_TOPIC_ID)
    except Fault as fault:
        return write_fetched(call.correlation_id, call.version, error_of(fault), 0, ())
    return Fetching(call, head, session).begin()


class Cold(NamedTuple):
    """A read that must wait for the disk: where its result goes, and what to read."""

    topic: str | Id
    place: int
    wanted: PartitionWanted
    piece: Piece


class Seen(NamedTuple):
    """Where a partition stood when it was looked at."""

    bytes_appended: int  # -1: not known, as not all of its log was committed
    epoch: int


class Fetching:
    """One Fetch request, from its first look at the log to its answer."""

    def __init__(self, call: Call, head: FetchHead, session: Session | None) -> None:
        self._call = call
        self._session = session
        self._whole = session is None or head.session_epoch == OPENING  # every partition is answered, changed or not
        self._wanted = list(_once(head) if session is None else session.wanted())
        if len(self._wanted) > MANY_AT_ONCE:
            require_few(len(self._wanted))
            call.connection.turn.is_slow = True
        self._committed = head.isolation == READ_COMMITTED
        self._min_bytes = head.min_bytes
        self._max_bytes = min(head.max_bytes, call.connection.door.answer_max_bytes)
        self._max_wait_s = min(head.max_wait_ms, FETCH_WAIT_MAX_MS) / 1000
        self._rack = head.rack  # where the consumer stands; empty: it does not say
        self._hinted = False  # some answer names a leader
        self._watched: dict[Partition, Seen] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._retrying = False

    def begin(self) -> Answer | None:
        self._look()
        if self._cold:
            self._read_cold()
            return None
        if self._enough or self._max_wait_s <= 0:
            return self._answer()
        self._timer = asyncio.get_running_loop().call_later(self._max_wait_s, self._guarded, self._finish)
        self._remember()
        for partition in self._watched:
            partition.watch(self._poke)
        self._call.abandoned = self._unwatch
        return None

    # Looking

    def _look(self) -> None:
        """Read what there is, partition by partition, within the limits."""
        self._topics: TopicsFetched = {}
        self._found: list[Partition] = []
        self._cold: list[Cold] = []
        self._next: list[Piece] = []  # what the client will ask for next
        self._size = 0
        self._done = False  # there is something that must not wait: a fault, or more than one answer can hold
        for topic, wanted in self._wanted:
            answers = self._topics.setdefault(topic, [])
            answers.append(self._look_at(topic, len(answers), wanted))

    @property
    def _enough(self) -> bool:
        return self._size >= self._min_bytes or self._done

    def _look_at(self, topic: str | Id, place: int, wanted: PartitionWanted) -> PartitionFetched:
        try:
            partition = self._find(topic, wanted)
            if self._rack and (nearer := self._nearer(partition, wanted.offset)) is not None:
                self._done = True
                return _fetched(wanted, partition, b"")._replace(preferred_replica=nearer)
            self._found.append(partition)
            if (not_yet := partition.not_available(wanted.offset)) is not None:
                return _fetched(wanted, partition, b"")._replace(error=error_of(not_yet))
            room = self._max_bytes - self._size
            if self._size and room <= 0:
                return _fetched(wanted, partition, b"")
            max_bytes = min(wanted.max_bytes, room, self._call.node.settings.fetch_partition_max_bytes)
            piece = Piece(partition, wanted.offset, max_bytes, self._committed)
            read = self._call.node.read_ahead.read(piece)
            aborted = self._aborted_in(partition, wanted.offset, read) if read and self._committed else None
            if read is None or (aborted is None and self._committed):
                self._cold.append(Cold(topic, place, wanted, piece))
                return _fetched(wanted, partition, b"")
            return self._took(wanted, piece, read, aborted)
        except Fault as fault:
            return self._refused(topic, wanted, fault)

    def _find(self, topic: str | Id, wanted: PartitionWanted) -> Partition:
        partition = self._call.node.hosted.find(topic, wanted.partition)
        if self._call.version >= FIRST_FROM_FOLLOWERS:
            partition.require_readable()
        else:
            partition.require_leader()
        partition.require_epoch(wanted.leader_epoch)
        return partition

    def _aborted_in(self, partition: Partition, offset: int, read: Read) -> list[Aborted] | None:
        return partition.log.aborted_between(offset, read.next_offset) if read.data else []

    def _nearer(self, partition: Partition, offset: int) -> BrokerId | None:
        node = self._call.node
        now = node.ports.clock.monotonic()
        return nearer_replica(partition, node.hosted.image.brokers, self._rack, offset, now)

    def _took(
        self, wanted: PartitionWanted, piece: Piece, read: Read, aborted: list[Aborted] | None
    ) -> PartitionFetched:
        partition = piece.partition
        if self._size and len(read.data) > self._max_bytes - self._size:
            return _fetched(wanted, partition, b"")  # only the first may be over the limit
        self._size += len(read.data)
        if read.data and read.next_offset < partition.readable(committed=self._committed):
            self._done = True
            self._next.append(piece._replace(offset=read.next_offset))
        told = None if aborted is None else [(one.producer_id, one.first_offset) for one in aborted]
        return _fetched(wanted, partition, read.data, told)

    def _refused(self, topic: str | Id, wanted: PartitionWanted, fault: Fault) -> PartitionFetched:
        self._done = True
        leader, epoch = hint_for(self._call.node, topic, wanted.partition, fault)
        self._hinted |= leader >= 0
        return PartitionFetched(wanted.partition, error_of(fault), leader=leader, leader_epoch=epoch)

    # Waiting

    def _poke(self) -> None:
        """A high watermark moved, or a leader: look again, once for all that moved in this turn of the loop."""
        if not self._retrying:
            self._retrying = True
            asyncio.get_running_loop().call_soon(self._guarded, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        if self._timer is None or not self._may_be_enough():
            return
        turned = any(partition.epoch != seen.epoch for partition, seen in self._watched.items())
        self._look()
        if self._cold:
            self._unwatch()
            self._read_cold()
        elif self._enough or turned:
            self._finish()
        else:
            self._remember()

    def _remember(self) -> None:
        """Note where the partitions stand that were just looked at."""
        self._watched = {
            partition: Seen(partition.bytes_appended if self._reads_to_end(partition) else -1, partition.epoch)
            for partition in self._found
        }

    def _reads_to_end(self, partition: Partition) -> bool:
        return partition.readable(committed=self._committed) == partition.log.end

    def _may_be_enough(self) -> bool:
        """Whether looking again can be worth it: reading costs more than counting. In doubt, it is."""
        size = self._size
        for partition, seen in self._watched.items():
            if seen.bytes_appended < 0 or partition.epoch != seen.epoch or not partition.leads:
                return True
            size += partition.bytes_appended - seen.bytes_appended
        return size >= self._min_bytes

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run a callback of the loop's: an error of ours costs this connection, and no client waits for ever."""
        try:
            work()
        except Exception:
            self._call.connection.failed("a waiting Fetch")

    def _finish(self) -> None:
        self._unwatch()
        self._call.reply(self._answer())

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for partition in self._watched:
            partition.unwatch(self._poke)
        self._watched = {}

    def _read_cold(self) -> None:
        self._call.connection.beside(self._read_off_loop(), "a Fetch")

    async def _read_off_loop(self) -> None:
        for cold in self._cold:
            try:
                fetched = self._took(cold.wanted, cold.piece, *await self._read_one_cold(cold.piece))
            except Fault as fault:
                fetched = self._refused(cold.topic, cold.wanted, fault)
            self._topics[cold.topic][cold.place] = fetched
        self._call.reply(self._answer())

    async def _read_one_cold(self, piece: Piece) -> tuple[Read, list[Aborted] | None]:
        partition, offset = piece.partition, piece.offset
        read = await partition.read_cold(offset, piece.max_bytes, committed=self._committed)
        if not self._committed:
            return read, None
        return read, await partition.log.aborted_between_cold(offset, read.next_offset) if read.data else []

    # Answering

    def _answer(self) -> Answer:
        call, session = self._call, self._session
        topics = self._topics
        if session is not None:
            topics = self._changed(session)
        if self._next:
            asyncio.get_running_loop().call_soon(self._guarded, self._read_ahead)
        session_id = 0 if session is None else session.id
        leaders = (one.leader for answers in topics.values() for one in answers) if self._hinted else ()
        return write_fetched(
            call.correlation_id, call.version, 0, session_id, list(topics.items()), endpoints_of(call.node, leaders)
        )

    def _read_ahead(self) -> None:
        """The answer was given to the transport in the turn of the loop before this one."""
        if self._call.connection.has_sent_all:
            self._call.node.read_ahead.prepare(self._next)

    def _changed(self, session: Session) -> TopicsFetched:
        """What a session's client has not been told yet."""
        news: TopicsFetched = {}
        for topic, answers in self._topics.items():
            for one in answers:
                told = session.partitions.get((topic, one.partition))
                if told is None:
                    continue
                known = (told.high_watermark, told.log_start)
                told.high_watermark, told.log_start = one.high_watermark, one.log_start
                if one.records:
                    session.rotate((topic, one.partition))
                changed = known != (one.high_watermark, one.log_start)
                if self._whole or changed or one.records or one.error or one.preferred_replica >= 0:
                    news.setdefault(topic, []).append(one)
        return news


def _once(head: FetchHead) -> Iterable[tuple[str | Id, PartitionWanted]]:
    """What is wanted; a partition that is named again is wanted as it was named last, as in Kafka."""
    wanted = {(topic, one.partition): one for topic, partitions in head.topics for one in partitions}
    return ((topic, one) for (topic, _), one in wanted.items())


def _fetched(
    wanted: PartitionWanted, partition: Partition, records: Buffer, aborted: list[tuple[int, int]] | None = None
) -> PartitionFetched:
    log, high_watermark = partition.log, partition.high_watermark
    stable = log.last_stable(high_watermark)
    return PartitionFetched(wanted.partition, 0, high_watermark, stable, log.start, records, aborted=aborted)
