"""What the sink reads of the cluster: topics and brokers, registrations, messages, and where consumers are.

Only records that are committed and visible to readers are read.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tailrace.client.admin import list_topics
from tailrace.client.cluster_map import UNKNOWN
from tailrace.client.faults import Refused
from tailrace.client.last_seen import LastSeen, Seen
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.registrations import Registration, group_of, read_registration
from tailrace.client.share_admin import share_group_offsets
from tailrace.client.visible_reading import read_visible
from tailrace.model.faults import Fault
from tailrace.model.ids import PartitionName, show_id
from tailrace.model.limits import MiB
from tailrace.pipeline.failure import NoBrokerAvailable, PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.records.header import BatchHeader
from tailrace.records.opened import open_batch
from tailrace.records.record import Record
from tailrace.wire.errors import Error

PIECE_MAX_BYTES: Final = 1 * MiB
INTERNAL: Final = "__"  # how the names of topics begin that are none of the queue's


class Topic(NamedTuple):
    id: str
    name: str
    partitions: int

    def places(self) -> list[PartitionName]:
        return [PartitionName(self.name, number) for number in range(self.partitions)]


class Survey(NamedTuple):
    cluster_id: str
    brokers: Mapping[int, str]  # their addresses
    topics: Mapping[str, Topic]  # all, internal ones included

    def queue_topics(self) -> list[Topic]:
        """What the queue lists."""
        return [one for one in self.topics.values() if not one.name.startswith(INTERNAL)]


class Message(NamedTuple):
    place: PartitionName
    sequencer: int  # the producer id of its batch
    record: Record


class Registered(NamedTuple):
    registration: Registration
    at_ms: int


class OutOfRange(Exception):
    """The log does not have this offset: it begins later, or ends before."""


class TopicGone(Exception):
    """The topic was deleted meanwhile."""


class QueueReader:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last_seen = LastSeen(cluster.core)

    def now_ms(self) -> int:
        return self._cluster.core.driver.wall_ms()

    def survey(self) -> Survey:
        """The topics and brokers there are now."""
        core = self._cluster.core
        found = self._cluster.run(list_topics(core))
        if core.map.cluster_id is None:
            raise NoBrokerAvailable("the broker that answers does not know its cluster yet")
        topics = {
            one.name: Topic(show_id(one.topic_id), one.name, len(one.partitions))
            for one in found
            if one.name and one.partitions and one.error_code not in UNKNOWN
        }
        brokers = {int(number): str(address) for number, address in core.map.brokers.items()}
        return Survey(core.map.cluster_id, brokers, topics)

    def begins(self, places: Collection[PartitionName]) -> dict[PartitionName, int]:
        """The first offsets; TopicGone if a topic is."""
        return self._offsets(places, EARLIEST, committed=False)

    def ends(self, places: Collection[PartitionName], *, committed: bool = True) -> dict[PartitionName, int]:
        """The offsets after the last ones; TopicGone if a topic is."""
        return self._offsets(places, LATEST, committed=committed)

    def _offsets(self, places: Collection[PartitionName], at: int, *, committed: bool) -> dict[PartitionName, int]:
        async def look() -> dict[PartitionName, int]:
            try:
                return await offsets_at(self._cluster.core, dict.fromkeys(places, at), committed=committed)
            except Refused as refused:
                if refused.error in UNKNOWN:
                    raise TopicGone from None
                raise

        return self._cluster.run(look())

    def last_seen(self) -> list[Seen]:
        return self._cluster.run(self._last_seen.read())

    def messages(self, place: PartitionName, offset: int) -> tuple[list[Message], int]:
        """A piece of a partition, and the next offset: the same one if there is nothing. OutOfRange or TopicGone if it
        cannot be read."""
        found, end = self._read(place, offset)
        return [Message(place, header.producer_id, record) for header, record in found], end

    def registrations(self, place: PartitionName, offset: int) -> tuple[list[Registered], int]:
        """All from this offset on."""
        found: list[Registered] = []
        while True:
            piece, end = self._read(place, offset)
            for _, record in piece:
                if record.value is not None:
                    found.append(Registered(read_registration(record.offset, record.value), record.timestamp))
            if end == offset:
                return found, end
            offset = end

    def _read(self, place: PartitionName, offset: int) -> tuple[list[tuple[BatchHeader, Record]], int]:
        async def read() -> tuple[list[tuple[BatchHeader, Record]], int]:
            try:
                visible = await read_visible(self._cluster.core, place, offset, PIECE_MAX_BYTES)
            except Refused as refused:
                if refused.error is Error.OFFSET_OUT_OF_RANGE:
                    raise OutOfRange from None
                if refused.error in UNKNOWN:
                    raise TopicGone from None
                raise
            if visible is None or visible.end <= offset:
                return [], offset
            opened = [
                (header, record)
                for at, header in visible.batches
                for record in open_batch(visible.data[at : at + header.size])
                if record.offset >= offset
            ]
            return opened, visible.end

        try:
            return self._cluster.run(read())
        except Fault as fault:
            raise PipelineFailed(f"cannot read {place} from offset {offset} on: {fault}") from None

    def demand_unchanged(self, topics: Sequence[Topic]) -> None:
        """TopicGone if one of these topics was deleted, or deleted and made again, since it was surveyed."""
        core = self._cluster.core

        async def ask() -> dict[str, str]:
            found = (await core.refresh([one.name for one in topics])).topics
            return {one.name or "": show_id(one.topic_id) for one in found if one.error_code not in UNKNOWN}

        ids = self._cluster.run(core.retry("look up topics", ask))
        if any(ids.get(one.name) != one.id for one in topics):
            raise TopicGone

    def positions(self, consumer: int, places: Sequence[PartitionName]) -> Iterator[tuple[PartitionName, "Position"]]:
        """Where a consumer is; nothing about partitions that it has not begun with."""
        offsets = self._cluster.run(share_group_offsets(self._cluster.core, group_of(consumer)))
        for place in places:
            found = offsets.get(place)
            if found is not None and found.start is not None:
                yield place, Position(found.start, found.lag)


class Position(NamedTuple):
    start: int  # the first offset that the consumer has not finished
    lag: int | None  # the offsets from there on that it has not finished; None: the broker does not know
