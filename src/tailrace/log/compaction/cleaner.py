"""The cleaner: which records of a log stay, and the batches without the others. It runs in a worker process.

A pass has two rounds. `survey` takes the dirty part and notes the last offset of each key, of committed records only;
records that a later one supersedes are marked at once. `clean` then takes everything from the log start to the end of
what was surveyed. A surveyed batch is only compared with the marks: one that loses nothing is not even decompressed.
In the part that earlier passes have cleaned, each key is looked up.

What stays:
- the last committed record of each key, and records without a key. A tombstone that is the last record of its key goes
  when it lies below `horizon`. Records of aborted transactions go.
- an emptied batch that is the last one of an active producer (`keep_last`), without records: it has the producer's last
  sequence. Other emptied batches are replaced by fillers (`fillers`).
- a transaction's marker, unless it lies below `horizon` and no batch of the transaction is left before it; and a marker
  with the epoch of an active producer that has written nothing since (`keep_epochs`): nothing else has that epoch.
- every other control batch, and every batch that cannot be read; those are reported.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tailrace.log.compaction.fillers import Fillers, is_filler
from tailrace.log.compaction.key_map import KEY_BYTES, KeyMap
from tailrace.log.compaction.offset_set import OffsetSet
from tailrace.log.compaction.record_scan import Scan, record_starts, scan, scan_plain
from tailrace.log.compaction.rewriting import emptied, is_emptied, with_records
from tailrace.log.state.aborted_index import Aborted
from tailrace.model.faults import CorruptBatch, Fault
from tailrace.model.frozen import frozen
from tailrace.records.control import Marker, read_control
from tailrace.records.header import BatchHeader, check_intact
from tailrace.records.opened import batches, decompressed

Spans = dict[int, list[tuple[int, int]]]  # first offset and marker of the aborted transactions of each producer

NOTHING: Final = -1
NO_EPOCHS: Final[Mapping[int, int]] = MappingProxyType({})


@frozen
class Surveyed:
    through: int  # the survey has seen everything below
    full: bool  # whether it stopped because the map is full


@frozen
class Cleaned:
    data: bytes
    unreadable: tuple[tuple[int, str], ...] = ()  # base offset of each batch that stays because of this reason
    removed_records: int = 0
    removed_markers: tuple[tuple[int, int], ...] = ()  # producer id and offset


class Cleaner:
    """One pass at a time; `begin`, or a survey after a cleaning, starts the next one."""

    def __init__(self, map_max_bytes: int, secret: bytes) -> None:
        self._map_max_bytes = map_max_bytes
        self._secret = secret
        self.begin()

    def begin(self) -> None:
        """Begin a new pass, perhaps over another log."""
        self._map = KeyMap(self._secret)
        self._superseded = OffsetSet()
        self._tombstones = OffsetSet()
        self._unread: dict[int, str] = {}  # batches that the survey could not read, and why
        self._surveyed_from = self._surveyed_to = NOTHING
        self._cleaning = False
        self._next = NOTHING  # offset after the last batch that was cleaned, and that batch's leader epoch
        self._epoch = NOTHING
        self._fillers = Fillers()
        self._left: dict[int, None] = {}  # producers of whose open transaction a batch is left

    def survey(self, data: bytes, aborted: tuple[Aborted, ...]) -> Surveyed:
        """Take in whole consecutive batches. A full map stops the survey before a batch, but not before the first."""
        if self._cleaning:
            self.begin()
        spans = _spans(aborted)
        for batch, header in _whole_batches(data):
            if self._map.keys and self._used_bytes(header.records) > self._map_max_bytes:
                return Surveyed(through=header.base_offset, full=True)
            if self._surveyed_from == NOTHING:
                self._surveyed_from = header.base_offset
            if not header.is_control and header.records and not _is_aborted(header, spans):
                self._survey_batch(batch, header)
            self._surveyed_to = header.last_offset + 1
        return Surveyed(through=self._surveyed_to, full=False)

    def _used_bytes(self, more: int) -> int:
        return KEY_BYTES * (self._map.keys + more) + self._superseded.bytes + self._tombstones.bytes

    def _survey_batch(self, batch: memoryview, header: BatchHeader) -> None:
        base = header.base_offset
        try:
            header, body = decompressed(batch)
            found = scan_plain(header, body) or scan(batch, header, body)
        except Fault as fault:
            self._unread[base] = str(fault)
            return
        self._superseded.add(self._map.put(*_keyed(header, found)))
        self._tombstones.add([base + delta for delta in found.tombstones])

    def clean(
        self,
        data: bytes,
        aborted: tuple[Aborted, ...],
        *,
        horizon: int,
        keep_last: Mapping[int, int],
        keep_epochs: Mapping[int, int] = NO_EPOCHS,
    ) -> Cleaned:
        """The whole consecutive batches without what must go; called in order, from the log start on.

        Fillers at the end are held back, as they may go on in the next slice: `finish` returns them.
        """
        self._cleaning = True
        spans, done = _spans(aborted), _Slice(horizon, keep_last, keep_epochs)
        for batch, header in _whole_batches(data):
            if NOTHING < self._next < header.base_offset:  # a gap of an earlier form of compaction
                self._fillers.add(self._next, header.base_offset - 1, self._epoch)
            self._next, self._epoch = header.last_offset + 1, header.leader_epoch
            try:
                check_intact(batch)
                rest = self._cleaned_batch(batch, header, _is_aborted(header, spans), done)
            except Fault as fault:
                done.unreadable.append((header.base_offset, str(fault)))
                rest = batch
            if rest is None:
                self._fillers.add(header.base_offset, header.last_offset, header.leader_epoch)
                continue
            if header.is_transactional and not header.is_control:
                self._left[header.producer_id] = None
            done.parts += (self._fillers.take(), rest)
        return done.cleaned()

    def finish(self) -> Cleaned:
        """The fillers that were held back: at the end of the pass, and before another file is begun."""
        return Cleaned(data=self._fillers.take())

    def _cleaned_batch(
        self, batch: memoryview, header: BatchHeader, is_aborted: bool, done: "_Slice"
    ) -> memoryview | bytearray | None:
        """What is left of a batch; None: nothing."""
        if header.is_control:
            return self._cleaned_control(batch, header, done)
        if is_filler(header):
            return None
        if not header.records or is_aborted:
            kept: memoryview | bytearray | None = None
            done.removed_records += header.records
        else:
            kept = self._with_last_records(batch, header, done)
        if kept is None and done.is_last_of_producer(header):
            return batch if is_emptied(batch, header) else emptied(header)
        return kept

    def _cleaned_control(self, batch: memoryview, header: BatchHeader, done: "_Slice") -> memoryview | None:
        if not isinstance(read_control(batch), Marker):
            return batch
        is_needed = header.producer_id in self._left
        self._left.pop(header.producer_id, None)
        if is_needed or header.base_offset >= done.horizon or done.has_epoch_of_producer(header):
            return batch
        done.removed_markers.append((header.producer_id, header.base_offset))
        return None

    def _with_last_records(
        self, batch: memoryview, header: BatchHeader, done: "_Slice"
    ) -> memoryview | bytearray | None:
        base = header.base_offset
        if self._surveyed_from <= base < self._surveyed_to:
            if (reason := self._unread.get(base)) is not None:
                raise CorruptBatch(reason)
            removed = self._superseded.between(base, header.last_offset)
            if base < done.horizon:
                last = min(header.last_offset, done.horizon - 1)
                removed |= self._tombstones.between(base, last)
            if self._is_all_or_nothing(header, removed, done):
                return None if removed else batch
            _, body = decompressed(batch)
            if header.records == header.last_offset_delta + 1:  # the survey has read it, so it parses
                starts, deltas = record_starts(header.records, body), range(header.records)
                return _without(header, body, starts, deltas, removed)
            found = scan(batch, header, body)
        else:
            _, body = decompressed(batch)
            found = scan(batch, header, body)
            removed = self._looked_up(header, found, done.horizon)
            if self._is_all_or_nothing(header, removed, done):
                return None if removed else batch
        return _without(header, body, found.starts, found.deltas, removed)

    @staticmethod
    def _is_all_or_nothing(header: BatchHeader, removed: int, done: "_Slice") -> bool:
        """Whether the batch goes as a whole, or stays as it is; counts the records that go."""
        done.removed_records += (count := removed.bit_count())
        return count in (0, header.records)

    def _looked_up(self, header: BatchHeader, found: Scan, horizon: int) -> int:
        """The records that go, as bits by their offset delta."""
        base = header.base_offset
        gone = dict.fromkeys(offset - base for offset in self._map.superseded(*_keyed(header, found)))
        gone.update((delta, None) for delta in found.tombstones if base + delta < horizon)
        if not gone:
            return 0
        bits = bytearray(header.last_offset_delta // 8 + 1)
        for delta in gone:
            bits[delta >> 3] |= 1 << (delta & 7)
        return int.from_bytes(bits, "little")


class _Slice:
    """What `clean` does with one slice."""

    def __init__(self, horizon: int, keep_last: Mapping[int, int], keep_epochs: Mapping[int, int]) -> None:
        self.horizon = horizon
        self._keep_last = keep_last
        self._keep_epochs = keep_epochs
        self.parts: list[bytes | bytearray | memoryview] = []
        self.unreadable: list[tuple[int, str]] = []
        self.removed_records = 0
        self.removed_markers: list[tuple[int, int]] = []

    def is_last_of_producer(self, header: BatchHeader) -> bool:
        return header.base_offset <= self._keep_last.get(header.producer_id, NOTHING) <= header.last_offset

    def has_epoch_of_producer(self, header: BatchHeader) -> bool:
        return self._keep_epochs.get(header.producer_id) == header.producer_epoch

    def cleaned(self) -> Cleaned:
        return Cleaned(
            data=b"".join(self.parts),
            unreadable=tuple(self.unreadable),
            removed_records=self.removed_records,
            removed_markers=tuple(self.removed_markers),
        )


def _whole_batches(data: bytes) -> Iterator[tuple[memoryview, BatchHeader]]:
    position = 0
    for batch, header in batches(data):
        yield batch, header
        position += header.size
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes after the last whole batch of the slice")


def _without(header: BatchHeader, body: bytes, starts: list[int], deltas: Sequence[int], removed: int) -> bytearray:
    """The batch without the removed records, which are bits by their offset delta."""
    stays = f"{removed | 1 << header.last_offset_delta + 1:b}"[:0:-1]  # a character for each delta, "0" if it stays
    kept = [index for index, delta in enumerate(deltas) if stays[delta] == "0"]
    return with_records(header, body, [*starts, len(body)], kept)


def _keyed(header: BatchHeader, found: Scan) -> tuple[list[bytes], Sequence[int]]:
    """The keys of the records that have one, and their offsets."""
    base = header.base_offset
    if isinstance(found.deltas, range):  # of a plain batch: no record is missing, and all have keys
        return found.keys, range(base, base + len(found.keys))  # type: ignore[return-value]
    if None not in found.keys:
        return found.keys, [base + delta for delta in found.deltas]  # type: ignore[return-value]
    keyed = [(key, base + delta) for key, delta in zip(found.keys, found.deltas, strict=True) if key is not None]
    return [key for key, _ in keyed], [offset for _, offset in keyed]


def _spans(aborted: tuple[Aborted, ...]) -> Spans:
    spans: Spans = {}
    for one in aborted:
        spans.setdefault(one.producer_id, []).append((one.first_offset, one.last_offset))
    return spans


def _is_aborted(header: BatchHeader, spans: Spans) -> bool:
    return header.is_transactional and any(
        first <= header.base_offset <= last for first, last in spans.get(header.producer_id, ())
    )
