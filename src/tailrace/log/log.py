"""A partition's log, as the broker uses it: append, read, fsync and maintenance.

Offsets: log start `start` ≤ log end `end`. Everything below `durable` may be acknowledged: with fsync `always` it is
the log end at the moment when the last completed round of fsyncs began, otherwise it is the log end. Opening a log
whose folder does not exist touches nothing: the folder is made with the first batch.

Appends and reads are synchronous and never wait. Maintenance (`checkpoint`, `retain`, `truncate_to`, …) waits for the
disk and runs one operation at a time, while appends and reads go on. An append that the disk refuses leaves nothing
behind, and the next one may succeed. A failed fsync takes the log offline until the broker restarts (`failed` says
why). Damage closes it to appends (`damage` says where).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from tailrace.log import follower_append, maintenance
from tailrace.log.admission import NeedsRecompression, check_limits, check_records, looks_at_records, stored_codec
from tailrace.log.compaction.clean_state import CleanState, load_clean_state
from tailrace.log.compaction.swap import resume_swap
from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.index import time_lookup
from tailrace.log.index.time_lookup import Timed
from tailrace.log.reader import Read, Reader
from tailrace.log.recovery import damage_mark, refill, truncation
from tailrace.log.recovery.recovered import Damage, Recovered, RecoveryPoint
from tailrace.log.recovery.recovery import Recovery, unreadable_log
from tailrace.log.segment import Segment
from tailrace.log.state import horizon
from tailrace.log.state.aborted_index import Aborted
from tailrace.log.state.aborted_index_files import aborted_between
from tailrace.log.state.voters import write_control
from tailrace.log.syncing import Syncer
from tailrace.log.writing import ScanCost, write
from tailrace.model.faults import StorageFailed
from tailrace.model.settings import Fsync
from tailrace.model.topics import TopicSettings
from tailrace.ports import Ports
from tailrace.ports.disk import File
from tailrace.records.control import VoterIds
from tailrace.records.header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    stamp,
    stamp_append_time,
)

__all__ = ["Appended", "Damage", "Log", "Read", "RecoveryPoint", "Timed"]

logger: Final = logging.getLogger(__name__)
CREATE_TIME: Final = -1  # the append time of a batch that keeps its producer's timestamps


class Appended(NamedTuple):
    base_offset: int
    last_offset: int
    duplicate: bool  # the batch was in the log already; the offsets are those of the original
    append_time_ms: int  # -1 unless the topic has LogAppendTime
    log_start: int = 0


def _ignore() -> None:
    pass


class Log:
    def __init__(self, folder: str, ports: Ports, settings: TopicSettings, fsync: Fsync, recovered: Recovered) -> None:
        self.folder = folder
        self.ports = ports
        self.segments = recovered.segments  # by ascending base offset; the last one is active
        self.start = recovered.start
        self.end = recovered.end
        self.durable = recovered.end
        self.epochs = recovered.epochs
        self.producers = recovered.producers
        self.aborted = recovered.aborted
        self.voter_sets = recovered.voter_sets  # by ascending offsets of the control batches that set them
        self.damage = recovered.damage
        self.failed: StorageFailed | None = None
        self.on_durable: Callable[[], None] = _ignore  # an fsync has moved `durable`; not called by `append`
        self.on_failed: Callable[[], None] = _ignore
        self.on_damaged: Callable[[], None] = _ignore
        self.reset_syncer()
        self.maintenance_lock = asyncio.Lock()
        self._raising_horizon = asyncio.Lock()
        self._reader = Reader(self)
        self.clean = CleanState()  # how far it is compacted, and since when
        self.horizon = 0  # tombstones and transaction markers below it may be removed by compaction
        self.swaps = 0  # how often segments were replaced by compacted ones
        self.swapping = False  # whether such a replacement is under way, or has failed half-way
        self.recovery_point: RecoveryPoint | None = None  # of the last checkpoint, or that this log was opened with
        self.recorded_offset = 0  # of the recovery point that the caller has durably recorded
        self.point_saved = False  # whether the state files that belong to `recovery_point` are complete
        self.scan_cost = ScanCost()  # of everything appended; shared with the broker's other logs
        self.unsaved_cost = 0  # of what was appended since the last checkpoint
        self.stops_clean = False  # whether the last `checkpoint` or `close` covered everything: a stop now is clean
        self.can_checkpoint = recovered.damage is None  # false when damaged at the start, offline, closed or deleted
        self.truncated_at: int | None = None  # where it was truncated, while a recorded point may lie above
        self.truncation_covered = False  # whether a recovery point was recorded since
        self._always = fsync == "always"
        self.writes_refused = False  # whether the disk refused the last write, for lack of room or another reason
        self._unsynced_records = 0
        self._unsynced_since_ms: int | None = None
        self.voters_before: VoterIds = ()  # when the log was discarded; in force until the log has others
        self.refilling = False  # discarded and not complete yet: its replica must not vote, nor count for the quorum
        self.refusal = None if recovered.damage is None else f"damaged: {recovered.damage}"  # why appends are refused
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
        may_truncate: bool = True,
        scan_cost: ScanCost | None = None,
    ) -> "Log":
        """Open a log, whether its folder exists or not; after an unclean stop, scan everything above `recovery`.

        `may_truncate`: the recovery points are known, so bad bytes above them are a torn tail and are truncated.
        """
        now_ms = ports.clock.wall_ms()
        try:
            voters_before = await refill.resume(ports.disk, folder)
            await resume_swap(ports.disk, folder)
            opening = Recovery(ports.disk, folder, settings.index_interval_bytes, producer_expiration_ms, now_ms)
            marked = damage_mark.load_mark(ports.disk, folder)
            recovered = await opening.run(recovery, clean=clean, may_truncate=may_truncate, marked=marked)
            if marked is not None and recovered.damage is None:
                recovered.damage = await damage_mark.check_again(ports.disk, folder, recovered, marked)
        except OSError as error:
            voters_before, recovered = None, unreadable_log(folder, recovery, producer_expiration_ms, error)
        log = cls(folder, ports, settings, fsync, recovered)
        log.scan_cost = scan_cost or log.scan_cost
        log.refilling = voters_before is not None
        log.voters_before = voters_before or ()
        log.recovery_point = recovered.point_past_damage or recovery
        log.point_saved, log.truncated_at = recovered.point_saved, recovered.truncated_at
        log.stops_clean = clean
        if recovered.damage is None:
            log.clean = load_clean_state(ports.disk, folder, log.end)
        log.recorded_offset = 0 if recovery is None else recovery.offset
        horizon.load_into(log)
        return log

    def use(self, settings: TopicSettings) -> None:
        """Apply these settings from now on."""
        self.settings = settings
        self.draw_roll_age()
        self._append_time = settings.message_timestamp_type == "LogAppendTime"
        self.looks_at_records = looks_at_records(settings)
        self._codec = stored_codec(settings)
        for segment in self.segments:
            segment.set_interval(settings.index_interval_bytes)

    def draw_roll_age(self) -> None:
        """Set the age at which the active segment ends: a random amount less than what the settings say."""
        roll_ms = self.settings.roll_ms
        jitter_ms = min(self.settings.segment_jitter_ms, roll_ms)
        self.roll_ms = roll_ms - (self.ports.random.below(jitter_ms) if jitter_ms else 0)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # Appending

    def append(
        self,
        batch: memoryview,
        header: BatchHeader,
        epoch: int,
        now_ms: int,
        *,
        internal: bool = False,
        body: bytes | None = None,
    ) -> Appended:
        """Append a batch as the leader: stamp offset and epoch in place, and write it. `internal`: not a client's.

        `NeedsRecompression` if the topic stores another codec; `body`: the decompressed records, if it was done."""
        if self.refusal is not None:
            raise StorageFailed(f"{self.folder} is {self.refusal}")
        producer = header.producer_id >= 0
        if producer and not internal and (sent := self.producers.check(header)) is not None:
            return Appended(sent.base_offset, sent.last_offset, True, sent.append_time_ms, self.start)
        if not internal:
            check_limits(self.settings, batch, header, now_ms, append_time=self._append_time)
            if self._codec is not None and header.attributes & COMPRESSION_MASK != self._codec.id:
                raise NeedsRecompression(self._codec)
            if self.looks_at_records:
                check_records(self.settings, batch, header, now_ms, body)
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
            self._apply_transactional(header, batch, base, append_time, now_ms)
        elif producer:
            self.producers.add_batch(header, base, append_time, now_ms)
        return Appended(base, self.end - 1, False, append_time, self.start)

    def _apply_transactional(
        self, header: BatchHeader, batch: memoryview, base: int, append_time_ms: int, now_ms: int
    ) -> None:
        if (aborted := self.producers.apply(header, batch, base, append_time_ms, now_ms)) is not None:
            self.aborted.add(self.segments[-1].base, aborted)

    def append_as_is(self, data: memoryview, now_ms: int) -> int:
        """Append batches as a follower, with the leader's offsets and epochs; returns how many were whole."""
        return follower_append.append_as_is(self, data, now_ms)

    def note_written(self, file: File, records: int, now_ms: int) -> None:
        """Records were written to a file: schedule its fsync as the settings demand."""
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

    def read(self, offset: int, max_bytes: int, limit: int, *, skip_empty: bool = False) -> Read | None:
        """Whole batches below `limit`, from the one that holds `offset` on; None when `read_cold` must be used.

        At most `max_bytes`, but at least one batch if there is one; all from one segment. With `skip_empty`, batches
        without records are skipped before the first one that has some, if there is one.
        """
        return self._reader.read(offset, max_bytes, limit, skip_empty)

    async def read_cold(self, offset: int, max_bytes: int, limit: int, *, skip_empty: bool = False) -> Read:
        """Like `read`, but awaits the disk."""
        return await self._reader.read_cold(offset, max_bytes, limit, skip_empty)

    def last_stable(self, high_watermark: int) -> int:
        """The last stable offset: every transaction that begins below it is decided. Never above the high watermark."""
        transactions = self.producers.transactions
        if not transactions.any:
            return high_watermark
        return max(self.start, transactions.last_stable(high_watermark))

    def aborted_between(self, offset: int, upto: int) -> list[Aborted] | None:
        """The aborted transactions that overlap these offsets; None when `aborted_between_cold` must be used."""
        found = self.aborted.find(offset, upto)
        return None if isinstance(found, int) else found

    async def aborted_between_cold(self, offset: int, upto: int) -> list[Aborted]:
        """Like `aborted_between`, but awaits the disk."""
        return await aborted_between(self, offset, upto)

    async def offset_for_time(self, timestamp_ms: int, limit: int) -> Timed | None:
        """The first record below `limit` whose timestamp is `timestamp_ms` or later."""
        return await self._despite_swaps(lambda: time_lookup.offset_for_time(self, timestamp_ms, limit))

    async def max_timestamp(self, limit: int) -> Timed | None:
        """The first record with the highest timestamp below `limit`."""
        return await self._despite_swaps(lambda: time_lookup.max_timestamp(self, limit))

    async def _despite_swaps(self, search: Callable[[], Awaitable[Timed | None]]) -> Timed | None:
        """Search again when segments were replaced by compacted ones meanwhile."""
        while True:
            swaps = self.swaps
            found = await search()
            if swaps == self.swaps:
                return found

    # Maintenance

    async def checkpoint(self) -> RecoveryPoint | None:
        """Make everything durable; returns the recovery point, above which the next start scans. None: an empty log.

        The caller records the point durably, and then calls `recorded`.
        """
        async with self.maintenance_lock:
            return await maintenance.checkpoint(self)

    @property
    def is_checkpointed(self) -> bool:
        """Whether a checkpoint would have nothing to do."""
        return maintenance.is_checkpointed(self)

    def recorded(self, point: RecoveryPoint) -> None:
        """`point` is durably recorded for the next start: files that only earlier points need may be removed."""
        if self.truncated_at is not None and not self.truncation_covered:
            if not (self.point_saved and point == self.recovery_point):
                return  # the point is older than the truncation
            self.truncation_covered = True
        self.recorded_offset = point.offset

    async def retain(self, now_ms: int, high_watermark: int) -> int:
        """Remove the oldest segments that `retention.ms` or `retention.bytes` no longer keep; returns how many."""
        async with self.maintenance_lock:
            return await maintenance.retain(self, now_ms, high_watermark)

    async def advance_start(self, offset: int) -> None:
        """Move the log start to `offset`; segments that lie wholly below it are removed."""
        async with self.maintenance_lock:
            await maintenance.advance_start(self, offset)

    async def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records and continue at `offset`, which lies past the log end."""
        async with self.maintenance_lock:
            await maintenance.truncate_fully_and_start_at(self, offset)

    async def truncate_to(self, offset: int) -> None:
        """Truncate the log at `offset`, or at the start of the batch that holds it, and roll back all derived state."""
        async with self.maintenance_lock:
            await truncation.truncate_to(self, offset)

    async def start_over(self, *, keep_aside: bool = False) -> None:
        """Discard everything, including the damage: an empty log, to be refilled from the leader's log start on.

        `keep_aside`: the old files are kept in a folder aside until the log is refilled."""
        async with self.maintenance_lock, self._raising_horizon:
            await refill.start_over(self, keep_aside=keep_aside)

    async def refilled(self) -> None:
        """The refill is complete: the log has everything that its leader has."""
        async with self.maintenance_lock:
            await refill.refilled(self)

    async def raise_horizon(self, offset: int) -> None:
        """Raise the tombstone horizon durably; it never falls. Does not wait for other maintenance."""
        async with self._raising_horizon:
            if offset > self.horizon:
                await horizon.store(self, offset)

    async def close(self) -> RecoveryPoint | None:
        """Make a checkpoint and close the files."""
        async with self.maintenance_lock:
            return await maintenance.close(self)

    async def delete(self) -> None:
        """Remove the folder and everything in it."""
        async with self.maintenance_lock:
            await maintenance.delete(self)

    # Fsync

    def reset_syncer(self) -> None:
        """Start with everything up to the log end durable, and nothing to fsync."""
        self.syncer = Syncer(self.ports.disk, lambda: self.end, self._synced, self._sync_failed, self.end)

    def sync_soon(self) -> None:
        """Start an fsync of everything written so far; repeated calls are combined."""
        if self.syncer.files or self.syncer.folders:
            self.syncer.soon()

    def sync_if_due(self, now_ms: int) -> None:
        """Start an fsync when `flush.ms` has passed; called periodically."""
        since = self._unsynced_since_ms
        if since is not None and now_ms - since >= self.settings.flush_ms:
            self.sync_soon()

    def flush(self) -> "asyncio.Future[None]":
        """Done when everything appended before this call is durable."""
        return self.syncer.flush()

    def _synced(self) -> None:
        if self.syncer.synced == self.end:
            self._unsynced_records, self._unsynced_since_ms = 0, None
        if self._always and self.durable != self.syncer.synced:
            self.durable = self.syncer.synced
            self.on_durable()

    # Damage and failures

    def found_damage(self, segment: Segment, position: int, offset: int, reason: str) -> None:
        """Report stored bytes that cannot be read, and refuse appends from now on."""
        if segment.removed or (self.damage is not None and self.damage.offset <= offset):
            return
        self.damage = Damage(file=segment.path_of(SEGMENT_SUFFIX), position=position, offset=offset, reason=reason)
        logger.error("log damaged, appends to it are refused: %s", self.damage)
        self.refuse_if_damaged()
        self.on_damaged()

    def refuse_if_damaged(self) -> None:
        if self.damage is not None:
            self.refusal = self.refusal or f"damaged: {self.damage}"

    async def mark_damage(self) -> None:
        """Mark the damage on disk, so that the next start checks that offset."""
        if self.damage is not None:
            await damage_mark.mark(self.ports.disk, self.folder, self.damage.offset)

    def _sync_failed(self, error: BaseException) -> None:
        self.take_offline(
            f"fsync failed in {self.folder}, records since the last successful fsync may be lost: {error}"
        )

    def take_offline(self, reason: str) -> None:
        """Refuse all appends until the broker restarts and recovers this log."""
        if self.failed is None:
            self.failed = StorageFailed(reason)
            self.can_checkpoint = self.stops_clean = False
            self.refusal = f"offline: {reason}"
            logger.critical("log offline until the broker restarts: %s", reason)
            self.on_failed()
