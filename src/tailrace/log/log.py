"""A partition's log, as the broker sees it: append, read, sync, and the chores that keep it small and safe.

Offsets: `start` ≤ `end`; `durable` is what may be promised. With fsync `always` it is the end that was noted when the
last finished round of syncs began; otherwise it is the end. Opening a log whose folder does not exist touches nothing:
the folder appears with the first batch.

Appends and reads are synchronous and never wait. Chores (`checkpoint`, `retain`, `truncate_to`, …) wait for the disk
and for each other; appends and reads go on meanwhile. An append that the disk refuses leaves nothing behind, and the
next one may work. A sync that fails closes the log for good, as does damage: `failed` and `damage` say why.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from tailrace.log import follower_append, maintenance
from tailrace.log.admission import check_limits, check_records, looks_at_records
from tailrace.log.checked_batches import Read
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.index import time_lookup
from tailrace.log.index.time_lookup import Timed
from tailrace.log.reader import Reader
from tailrace.log.recovery import damage_mark, refill, truncation
from tailrace.log.recovery.found import Damage, Recovered, RecoveryPoint
from tailrace.log.recovery.recovery import Recovery, unreadable
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import Aborted
from tailrace.log.state.aborted_index_files import aborted_between
from tailrace.log.state.voters import write_control
from tailrace.log.syncing import Syncer
from tailrace.log.writing import write
from tailrace.model.faults import StorageFailed
from tailrace.model.settings import Fsync
from tailrace.model.topics import TopicSettings
from tailrace.ports import Ports
from tailrace.ports.disk import File
from tailrace.records.control import VoterIds
from tailrace.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader, stamp, stamp_append_time

__all__ = ["Appended", "Damage", "Log", "Read", "RecoveryPoint", "Timed"]

logger: Final = logging.getLogger(__name__)
CREATE_TIME: Final = -1  # the append time of a batch that keeps its producer's times


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    duplicate: bool  # of a batch that is in the log already; the offsets are its own
    append_time_ms: int  # -1 unless the topic has LogAppendTime
    log_start: int = 0


def _ignore() -> None:
    pass


class Log:
    def __init__(self, folder: str, ports: Ports, settings: TopicSettings, fsync: Fsync, found: Recovered) -> None:
        self.folder = folder
        self.ports = ports
        self.segments = found.segments  # by rising base offset; the last one is active
        self.start = found.start
        self.end = found.end
        self.durable = found.end
        self.epochs = found.epochs
        self.producers = found.producers
        self.aborted = found.aborted
        self.voter_sets = found.voter_sets  # who votes from which offset on, rising: what control batches have said
        self.damage = found.damage
        self.failed: StorageFailed | None = None
        self.on_durable: Callable[[], None] = _ignore  # `durable` has moved by a sync; not called from `append`
        self.on_failed: Callable[[], None] = _ignore
        self.on_damaged: Callable[[], None] = _ignore
        self.begin_syncing()
        self._chores = asyncio.Lock()
        self._reader = Reader(self)
        self.point: RecoveryPoint | None = None  # the last that `checkpoint` gave, or that this log was opened with
        self.recorded_offset = 0  # where the point lies that the caller has surely recorded
        self.saved = False  # whether the files of `point` hold all that belongs to it
        self.settled = False  # the last `checkpoint` or `close` put all on disk: a stop is clean if all did
        self.known_whole = found.damage is None  # whether all of the log is known, so that a checkpoint can be made
        self.cut_at: int | None = None  # where the log was truncated, while a recorded point may lie above
        self.cut_covered = False  # whether a point has been recorded since
        self._always = fsync == "always"
        self.refusing = False  # the last write found no room, or another reason not to be taken
        self._unsynced_records = 0
        self._unsynced_since_ms: int | None = None
        self.voters_before: VoterIds = ()  # who voted when it was thrown away: they do until it names others
        self.refilling = False  # it was thrown away, and what it held has not all come back yet: it vouches for nothing
        self.refusal = None if found.damage is None else f"damaged: {found.damage}"
        self.use(settings)

    @classmethod
    async def open(
        cls,
        folder: str,
        ports: Ports,
        *,
        settings: TopicSettings,
        fsync: Fsync,
        recovery: RecoveryPoint | None,
        clean: bool,
        producer_expiration_ms: int,
        may_cut: bool = True,
    ) -> "Log":
        """Open a log, its folder there or not; after an unclean stop, scan what `recovery` does not cover.

        `may_cut` says that `recovery` is all that was promised, so that bad bytes above it are a torn tail.
        """
        now_ms = ports.clock.wall_ms()
        try:
            voters_before = await refill.resume(ports.disk, folder)
            opening = Recovery(ports.disk, folder, settings.index_interval_bytes, producer_expiration_ms, now_ms)
            marked = damage_mark.load_mark(ports.disk, folder)
            found = await opening.run(recovery, clean=clean, may_cut=may_cut, marked=marked)
            if marked is not None and found.damage is None:
                found.damage = await damage_mark.look_again(ports.disk, folder, found, marked)
        except OSError as error:
            voters_before, found = None, unreadable(folder, recovery, producer_expiration_ms, error)
        log = cls(folder, ports, settings, fsync, found)
        log.refilling = voters_before is not None
        log.voters_before = voters_before or ()
        log.point, log.saved, log.cut_at = found.held_to or recovery, found.saved, found.cut_at
        log.settled = clean
        log.recorded_offset = 0 if recovery is None else recovery.offset
        return log

    def use(self, settings: TopicSettings) -> None:
        """Go by these settings from now on."""
        self.settings = settings
        self._append_time = settings.message_timestamp_type == "LogAppendTime"
        self.looks_at_records = looks_at_records(settings)
        for segment in self.segments:
            segment.set_interval(settings.index_interval_bytes)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # Appending

    def append(
        self, batch: memoryview, header: BatchHeader, epoch: int, now_ms: int, *, internal: bool = False
    ) -> Appended:
        """Append a leader's batch, already checked: stamp it in place, write it. `internal`: it is a broker's own."""
        if self.refusal is not None:
            raise StorageFailed(f"{self.folder} is {self.refusal}")
        producer = header.producer_id >= 0
        if producer and not internal and (sent := self.producers.check(header)) is not None:
            return Appended(sent.base_offset, sent.last_offset, True, sent.append_time_ms, self.start)
        if not internal:
            check_limits(self.settings, len(batch), header, now_ms, append_time=self._append_time)
            if self.looks_at_records:
                check_records(self.settings, batch, header, now_ms)
        new_epoch = epoch != self.epochs.last
        assert not new_epoch or epoch > self.epochs.last, f"epoch {epoch} after {self.epochs.last}"
        append_time, timestamp = CREATE_TIME, header.max_timestamp
        if self._append_time:
            append_time = timestamp = now_ms
            stamp_append_time(batch, now_ms, header.attributes)
        base = self.end
        stamp(batch, base, epoch)
        put = write_control if header.attributes & CONTROL_BIT else write
        put(self, batch, base, base + header.last_offset_delta, timestamp, now_ms)
        if new_epoch:
            self.epochs.begin(epoch, base)
        if header.attributes & TRANSACTIONAL_BIT:
            self._note_transaction(header, batch, base, append_time, now_ms)
        elif producer:
            self.producers.sent(header, base, append_time, now_ms)
        return Appended(base, self.end - 1, False, append_time, self.start)

    def _note_transaction(
        self, header: BatchHeader, batch: memoryview, base: int, append_time_ms: int, now_ms: int
    ) -> None:
        if (aborted := self.producers.note(header, batch, base, append_time_ms, now_ms)) is not None:
            self.aborted.add(self.segments[-1].base, aborted)

    def append_as_is(self, data: memoryview, now_ms: int) -> int:
        """Append a leader's batches as a follower got them: their offsets and epochs stand. How many were whole."""
        return follower_append.append_as_is(self, data, now_ms)

    def written(self, file: File, records: int, now_ms: int) -> None:
        """A file has grown by so many records: they will be synced when the settings say so."""
        self.syncer.files[file] = None
        if self._always:
            self.syncer.soon()
            return
        self.durable = self.end
        self._unsynced_records += records
        if self._unsynced_since_ms is None:
            self._unsynced_since_ms = now_ms
        if self._unsynced_records >= self.settings.flush_messages:
            self.sync_soon()

    # Reading

    def read(self, offset: int, max_bytes: int, limit: int) -> Read | None:
        """Whole batches from the one that holds `offset`, below `limit`; None when the disk must be waited for.

        About `max_bytes`, but one batch at least when there is one; from one segment.
        """
        return self._reader.read(offset, max_bytes, limit)

    async def read_cold(self, offset: int, max_bytes: int, limit: int) -> Read:
        """As `read`, off the loop."""
        return await self._reader.read_cold(offset, max_bytes, limit)

    def last_stable(self, high_watermark: int) -> int:
        """Below this offset, which is not above the high watermark, every transaction is decided."""
        transactions = self.producers.transactions
        if not transactions.any:
            return high_watermark
        return max(self.start, transactions.last_stable(high_watermark))

    def aborted_between(self, offset: int, upto: int) -> list[Aborted] | None:
        """Aborted transactions that a reader of these offsets must know of; None when the disk must be waited for."""
        found = self.aborted.find(offset, upto)
        return None if isinstance(found, int) else found

    async def aborted_between_cold(self, offset: int, upto: int) -> list[Aborted]:
        """As `aborted_between`, off the loop."""
        return await aborted_between(self, offset, upto)

    async def offset_for_time(self, timestamp_ms: int, limit: int) -> Timed | None:
        """The first record below `limit` that is not older than `timestamp_ms`."""
        return await time_lookup.offset_for_time(self, timestamp_ms, limit)

    async def max_timestamp(self, limit: int) -> Timed | None:
        """The first of the records with the highest timestamp below `limit`."""
        return await time_lookup.max_timestamp(self, limit)

    # Chores

    async def checkpoint(self) -> RecoveryPoint | None:
        """Put everything on the disk; up to where a recovery need not look any more. None: there is nothing yet.

        Once the caller has written it down, durably, it says so with `recorded`.
        """
        async with self._chores:
            return await maintenance.checkpoint(self)

    @property
    def is_put_down(self) -> bool:
        """Whether a checkpoint would find nothing to do."""
        return maintenance.is_put_down(self)

    def recorded(self, point: RecoveryPoint) -> None:
        """The next start will be told of `point`: what only earlier ones needed may go."""
        if self.cut_at is not None and not self.cut_covered:
            if not (self.saved and point == self.point):
                return  # given before the cut
            self.cut_covered = True
        self.recorded_offset = point.offset

    async def retain(self, now_ms: int, high_watermark: int) -> int:
        """Remove the segments that retention no longer keeps; how many."""
        async with self._chores:
            return await maintenance.retain(self, now_ms, high_watermark)

    async def advance_start(self, offset: int) -> None:
        """Let the log begin at `offset`; segments that lie wholly below are removed."""
        async with self._chores:
            await maintenance.advance_start(self, offset)

    async def begin_anew(self, offset: int) -> None:
        """Let the log be empty and go on at `offset`, past its end: what lay between is lost."""
        async with self._chores:
            await maintenance.begin_anew(self, offset)

    async def truncate_to(self, offset: int) -> None:
        """Cut the log at `offset`, or at the batch that holds it, with all that was derived from it."""
        async with self._chores:
            await truncation.truncate_to(self, offset)

    async def start_over(self) -> None:
        """Throw everything away, damage too: an empty log that begins at 0, or wherever its leader's log does."""
        async with self._chores:
            await refill.start_over(self)

    async def refilled(self) -> None:
        """All that this log held before it started over has come back, as far as its leader has it."""
        async with self._chores:
            await refill.refilled(self)

    async def close(self) -> RecoveryPoint | None:
        """Write everything down and close the files."""
        async with self._chores:
            return await maintenance.close(self)

    async def delete(self) -> None:
        """Remove the folder with all that is in it."""
        async with self._chores:
            await maintenance.delete(self)

    # Syncing

    def begin_syncing(self) -> None:
        """What is there is on the disk, and nothing has been written since."""
        self.syncer = Syncer(self.ports.disk, lambda: self.end, self._synced, self._sync_failed, self.end)

    def sync_soon(self) -> None:
        """Force what was written to the disk, soon and once, however often asked."""
        if self.syncer.files or self.syncer.folders:
            self.syncer.soon()

    def sync_if_due(self, now_ms: int) -> None:
        """Honour `flush.ms`: to be called from time to time."""
        since = self._unsynced_since_ms
        if since is not None and now_ms - since >= self.settings.flush_ms:
            self.sync_soon()

    def flush(self) -> "asyncio.Future[None]":
        """Done when everything appended before this call is on the disk."""
        return self.syncer.flush()

    def _synced(self) -> None:
        if self.syncer.synced == self.end:
            self._unsynced_records, self._unsynced_since_ms = 0, None
        if self._always and self.durable != self.syncer.synced:
            self.durable = self.syncer.synced
            self.on_durable()

    # What can go wrong

    def found_damage(self, segment: Segment, position: int, offset: int, reason: str) -> None:
        """Bytes that were good are not any more: say so, and write no further."""
        if segment.removed or (self.damage is not None and self.damage.offset <= offset):
            return
        self.damage = Damage(file=segment.path_of(SEGMENT_SUFFIX), position=position, offset=offset, reason=reason)
        logger.error("damaged: %s", self.damage)
        self.refusal = self.refusal or f"damaged: {self.damage}"
        self.on_damaged()

    async def mark_damage(self) -> None:
        """Let the next start know where to look."""
        if self.damage is not None:
            await damage_mark.mark(self.ports.disk, self.folder, self.damage.offset)

    def _sync_failed(self, error: BaseException) -> None:
        self.close_for_good(f"{self.folder} could not be synced, what was written last may be lost: {error}")

    def close_for_good(self, reason: str) -> None:
        if self.failed is None:
            self.failed = StorageFailed(reason)
            self.known_whole = self.settled = False
            self.refusal = f"offline: {reason}"
            logger.critical("offline until restart: %s", reason)
            self.on_failed()
