"""The committed records of compacted partitions, and what each replica's compacted log must still say of them.

Every committed record is kept here when it is first observed, on any replica, long before a pass can remove it. A
replica may lack records, but:

- each record that it has is the one that was committed at that offset: so replicas agree on what survives;
- folded into a table, as a consumer with isolation level read_committed would do it, its log gives for every key the
  last committed value, and nothing for a key whose last record is a tombstone. That is required of each key whose last
  record lies below the replica's last stable offset; a replica that is still fetching lacks later ones;
- tombstones that are the last of their key, and transaction markers, are missing only below its tombstone horizon.

A transaction is committed or aborted as its marker says. What a consumer would skip is decided by the replica's own
index of aborted transactions, as the broker does it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.broker.partitions.partition import Partition
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.log import Log
from tailrace.model.ids import TopicPartition
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader
from tailrace.records.opened import batches, open_batch
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.storage import Storage

NOTHING: Final = -1

Replica = tuple[str, TopicPartition]  # the server's name, and the partition
Table = dict[bytes | None, tuple[int, bytes | None]]  # offset and value of the last record of each key


class Committed(NamedTuple):
    """A record, and its batch as far as compaction keeps it."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    epoch: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool


class CompactedHistory:
    def __init__(self) -> None:
        self.end = 0
        self.records: dict[int, Committed] = {}
        self.tombstones_removed: dict[int, None] = {}  # their offsets: seen gone, while no later record has their key
        self._crcs: dict[int, int] = {}  # by base offset
        self._markers: dict[int, list[tuple[int, bool]]] = {}  # by producer id: offset, whether it committed
        self._claimed: dict[int, tuple[int, str]] = {}  # by base offset: checksum, and the client that was told so

    def learn(self, storage: Storage, log: Log, high_watermark: int) -> None:
        """Take in what was committed since the last observation of any replica."""
        for batch, header in _stored(storage, log, self.end):
            if header.last_offset >= high_watermark:
                return
            if header.base_offset >= self.end:
                self._learn(batch, header)
            self.end = header.last_offset + 1

    def _learn(self, batch: memoryview, header: BatchHeader) -> None:
        self._crcs[header.base_offset] = header.crc
        if not header.is_control:
            self.records.update(_records(batch, header))
        elif isinstance(control := read_control(batch), Marker):
            self._markers.setdefault(header.producer_id, []).append((header.base_offset, control.committed))

    def is_committed(self, offset: int) -> bool | None:
        """Whether a record was committed; None: its transaction is open."""
        record = self.records[offset]
        if not record.is_transactional:
            return True
        return next((done for at, done in self._markers.get(record.producer_id, ()) if at > offset), None)

    def has_committed(self, offset: int, key: bytes | None, value: bytes | None) -> bool:
        record = self.records.get(offset)
        return record is not None and (record.key, record.value) == (key, value) and self.is_committed(offset) is True

    def table(self) -> Table:
        return {one.key: (at, one.value) for at, one in self.records.items() if self.is_committed(at)}

    def acknowledged(self, base: int, crc: int, client: str) -> None:
        self._claimed[base] = crc, client

    def check_claims(self) -> None:
        for base, (crc, client) in self._claimed.items():
            if self._crcs.get(base) != crc:
                raise InvariantViolated(Invariant.NOTHING_LOST, f"{client} was told of a batch at offset {base}")

    def check(self, storage: Storage, partition: Partition, seen: ReplicaObservation) -> None:
        """Check a replica's whole log, below its last stable offset."""
        log, limit, found, table = partition.log, partition.last_stable, dict[int, Committed](), Table()
        aborted = log.aborted.find(log.start, limit)
        if isinstance(aborted, int):
            return  # the index is not in memory
        end, controls = log.start, dict[int, None]()
        for batch, header in _stored(storage, log, log.start):
            if header.last_offset >= limit:
                break
            if header.base_offset != end:
                raise InvariantViolated(Invariant.COMPACTED, f"after offset {end} comes {header.base_offset}: {seen}")
            end = header.last_offset + 1
            if header.is_control:
                controls[header.base_offset] = None
            if header.is_control or not header.records:
                continue
            found = _records(batch, header)
            skipped = header.is_transactional and any(
                one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
                for one in aborted
            )
            for offset, record in found.items():
                self._check_record(offset, record, seen, skipped=skipped)
                if not skipped:
                    table[record.key] = offset, record.value
        self._check_table(table, limit, log.horizon, seen)
        for marker in (at for markers in self._markers.values() for at, _ in markers if log.horizon <= at < end):
            if marker not in controls and marker >= log.start:
                raise InvariantViolated(Invariant.HORIZON, f"no marker at {marker}, horizon {log.horizon}: {seen}")

    def _check_record(self, offset: int, record: Committed, seen: ReplicaObservation, *, skipped: bool) -> None:
        if record != self.records.get(offset):
            raise InvariantViolated(
                Invariant.COMPACTED, f"at {offset} {record}, but committed is {self.records.get(offset)}: {seen}"
            )
        if self.is_committed(offset) is not (not skipped):
            raise InvariantViolated(
                Invariant.NOT_BACK, f"readers {'skip' if skipped else 'see'} offset {offset} with {record}: {seen}"
            )

    def _check_table(self, table: Table, limit: int, horizon: int, seen: ReplicaObservation) -> None:
        for key, (offset, value) in self.table().items():
            if offset >= limit or offset < seen.start:
                continue
            has = table.get(key, (NOTHING, None))
            if value is None and has[0] < offset:
                self.tombstones_removed[offset] = None
                if offset >= horizon:
                    raise InvariantViolated(
                        Invariant.HORIZON, f"no tombstone of {key!r} at {offset}, horizon {horizon}: {seen}"
                    )
            if value is None and has[1] is not None:
                raise InvariantViolated(
                    Invariant.NOT_BACK, f"{key!r} was deleted at {offset}, but readers find {has}: {seen}"
                )
            if value is not None and has != (offset, value):
                raise InvariantViolated(
                    Invariant.LAST_VALUE, f"{key!r} has {value!r} at {offset}, but readers find {has}: {seen}"
                )


class CompactedHistories:
    """Those of all compacted partitions; also what their producers were told, see `claims`."""

    def __init__(self) -> None:
        self._by_key: dict[TopicPartition, CompactedHistory] = {}
        self.swaps = 0  # of segments by compacted ones
        self.begun_anew = Counter[Replica]()  # how often each has discarded its log, or set it aside

    @property
    def tombstones_removed(self) -> int:
        return sum(len(one.tombstones_removed) for one in self._by_key.values())

    def of(self, key: TopicPartition) -> CompactedHistory:
        return self._by_key.setdefault(key, CompactedHistory())

    def acknowledged(self, key: TopicPartition, base: int, crc: int, client: str) -> None:
        self.of(key).acknowledged(base, crc, client)


def _stored(storage: Storage, log: Log, start: int) -> Iterator[tuple[memoryview, BatchHeader]]:
    """The batches from the one that holds `start` on, from the bytes on the simulated disk."""
    segments = list(log.segments)
    ends = [*(segment.base for segment in segments[1:]), log.end]
    for segment, end in zip(segments, ends, strict=False):  # an empty log has no segment
        content = storage.tree.find(segment.path_of(SEGMENT_SUFFIX))
        if end > start and isinstance(content, FileContent):
            for batch, header in batches(bytes(content.visible[: segment.size])):
                if header.last_offset >= start:
                    yield batch, header


def _records(batch: memoryview, header: BatchHeader) -> dict[int, Committed]:
    return {
        one.offset: Committed(
            key=one.key,
            value=one.value,
            timestamp=one.timestamp,
            epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            is_transactional=header.is_transactional,
        )
        for one in open_batch(batch)
    }
