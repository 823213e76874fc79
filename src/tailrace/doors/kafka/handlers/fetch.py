"""Fetch: record batches from partitions this broker leads, straight from the log.

A request is answered at once when it finds `min_bytes` or a fault; otherwise it waits, watching its partitions' high
watermarks, until there is enough or its time is up. What the page cache does not hold is read off the loop first.
At least one batch is given even when it is over the limits, so that nobody gets stuck behind a large one.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import NamedTuple

from tailrace.broker.fetch_sessions import Session, opening
from tailrace.broker.partition import Partition
from tailrace.doors.kafka.call import Answer, Call
from tailrace.doors.kafka.faults import error_of
from tailrace.log.log import Read
from tailrace.model.faults import Fault, NotLeader
from tailrace.model.ids import Id
from tailrace.model.limits import fetch_wait_max_ms
from tailrace.wire.hot_fetch import FetchHead, PartitionFetched, PartitionWanted, read_fetch, write_fetched
from tailrace.wire.primitives import WireError

TopicsFetched = dict[str | Id, list[PartitionFetched]]


def fetch(call: Call) -> Answer | None:
    head = read_fetch(call.frame, call.at, call.version)
    if head.replica_id >= 0:
        raise WireError(f"Fetch in the name of replica {head.replica_id}: replicas fetch on the peers' port only")
    try:
        session = call.node.fetch_sessions.session_for(head)
    except Fault as fault:
        return write_fetched(call.correlation_id, call.version, error_of(fault), 0, ())
    return Fetching(call, head, session).begin()


class Cold(NamedTuple):
    """A read that must wait for the disk: where its result goes, and what to read."""

    topic: str | Id
    place: int
    partition: Partition
    wanted: PartitionWanted
    max_bytes: int


class Fetching:
    """One Fetch request, from its first look at the log to its answer."""

    def __init__(self, call: Call, head: FetchHead, session: Session | None) -> None:
        self._call = call
        self._session = session
        self._whole = session is None or head.session_epoch == opening  # every partition is answered, changed or not
        self._wanted = list(_once(head) if session is None else session.wanted())
        self._min_bytes = head.min_bytes
        self._max_bytes = min(head.max_bytes, call.connection.door.answer_max_bytes)
        self._max_wait_s = min(head.max_wait_ms, fetch_wait_max_ms) / 1000
        self._watched: dict[Partition, int] = {}  # with the bytes appended when it was looked at, -1: not known
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
            partition = self._call.node.replicas.find(topic, wanted.partition)
            partition.require_leader()
            partition.require_epoch(wanted.leader_epoch)
            self._found.append(partition)
            room = self._max_bytes - self._size
            if self._size and room <= 0:
                return _fetched(wanted, partition, b"")
            max_bytes = min(wanted.max_bytes, room, self._call.node.settings.fetch_partition_max_bytes)
            read = partition.read(wanted.offset, max_bytes)
            if read is None:
                self._cold.append(Cold(topic, place, partition, wanted, max_bytes))
                return _fetched(wanted, partition, b"")
            return self._took(wanted, partition, read)
        except Fault as fault:
            return self._refused(wanted, fault)

    def _took(self, wanted: PartitionWanted, partition: Partition, read: Read) -> PartitionFetched:
        if self._size and len(read.data) > self._max_bytes - self._size:
            return _fetched(wanted, partition, b"")  # only the first may be over the limit
        self._size += len(read.data)
        self._done |= bool(read.data) and read.next_offset < partition.high_watermark
        return _fetched(wanted, partition, read.data)

    def _refused(self, wanted: PartitionWanted, fault: Fault) -> PartitionFetched:
        self._done = True
        leader, epoch = (fault.leader, fault.epoch) if isinstance(fault, NotLeader) else (-1, -1)
        return PartitionFetched(wanted.partition, error_of(fault), leader=leader, leader_epoch=epoch)

    # Waiting

    def _poke(self) -> None:
        """A high watermark moved: look again, once for all that moved in this turn of the loop."""
        if not self._retrying:
            self._retrying = True
            asyncio.get_running_loop().call_soon(self._guarded, self._retry)

    def _retry(self) -> None:
        self._retrying = False
        if self._timer is None or not self._may_be_enough():
            return
        self._look()
        if self._cold:
            self._unwatch()
            self._read_cold()
        elif self._enough:
            self._finish()
        else:
            self._remember()

    def _remember(self) -> None:
        """Note where the partitions stand that were just looked at."""
        self._watched = {
            partition: partition.bytes_appended if partition.high_watermark == partition.log.end else -1
            for partition in self._found
        }

    def _may_be_enough(self) -> bool:
        """Whether looking again can be worth it: reading costs more than counting. In doubt, it is."""
        size = self._size
        for partition, seen in self._watched.items():
            if seen < 0 or not partition.leads:
                return True
            size += partition.bytes_appended - seen
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
                read = await cold.partition.read_cold(cold.wanted.offset, cold.max_bytes)
                fetched = self._took(cold.wanted, cold.partition, read)
            except Fault as fault:
                fetched = self._refused(cold.wanted, fault)
            self._topics[cold.topic][cold.place] = fetched
        self._call.reply(self._answer())

    # Answering

    def _answer(self) -> Answer:
        call, session = self._call, self._session
        topics = self._topics
        if session is not None:
            topics = self._changed(session)
        return write_fetched(
            call.correlation_id, call.version, 0, 0 if session is None else session.id, list(topics.items())
        )

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
                if self._whole or one.records or one.error or known != (one.high_watermark, one.log_start):
                    news.setdefault(topic, []).append(one)
        return news


def _once(head: FetchHead) -> Iterable[tuple[str | Id, PartitionWanted]]:
    """What is wanted; a partition that is named again is wanted as it was named last, as in Kafka."""
    wanted = {(topic, one.partition): one for topic, partitions in head.topics for one in partitions}
    return ((topic, one) for (topic, _), one in wanted.items())


def _fetched(
    wanted: PartitionWanted, partition: Partition, records: bytes | bytearray | memoryview
) -> PartitionFetched:
    high_watermark = partition.high_watermark
    return PartitionFetched(wanted.partition, 0, high_watermark, high_watermark, partition.log.start, records)
