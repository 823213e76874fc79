"""Opening a log: load what is in its folder, and repair what a crash left.

The recovery point divides the log. Everything below it was durable, with its indexes, producer snapshot and epoch
cache. It is not read again, except for the few kilobytes from the last index entry up to the point. After an unclean
stop everything above the point is scanned: batches must be whole, match their checksums, have consecutive offsets, and
epochs that do not fall. The first batch that fails is taken for a *torn tail*: it was being written when the power
failed, and was not durable yet. The log is truncated there.

Bad bytes *below* the point are *damage*: they may have been acknowledged. Then nothing is changed; the log is readable
below the damage and closed to appends. The same holds for bad bytes anywhere in three cases: after a clean stop, when
nothing was being written; when the checkpoint file is unreadable, so that the points are unknown; and where damage was
marked before (`damage_mark`).

Rules: a good batch is never removed unless a bad one stands before it. What was scanned is rewritten and fsynced before
it counts as durable (`write_back`). Above the point each segment begins where the one before it ends; one that does not
was brought back by a crash after a truncation, or follows lost bytes, and is removed. Scans yield to the event loop
after every chunk.
"""

import logging
from typing import Final

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import EPOCHS_NAME, GAP_SUFFIX, SEGMENT_SUFFIX, TRUNCATED_NAME, offsets_named
from tailrace.log.recovery import truncation
from tailrace.log.recovery.damage_mark import ANYWHERE
from tailrace.log.recovery.recovered import Damage, Recovered, RecoveryPoint
from tailrace.log.recovery.stray_files import stray_files
from tailrace.log.recovery.write_back import write_back
from tailrace.log.segment import Segment
from tailrace.log.segment_walk import WalkedBatch, walk_in_turns
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.aborted_index_files import aborted_at_open
from tailrace.log.state.epochs import EpochCache
from tailrace.log.state.gaps import read_gap, write_gaps_back
from tailrace.log.state.producer_snapshots import last_snapshot
from tailrace.log.state.producers import ProducerStates
from tailrace.log.state.voters import VoterRecovery
from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Disk, read_file
from tailrace.records.header import BatchHeader, read_header

logger: Final = logging.getLogger(__name__)


class DamageFound(Exception):
    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage


class Recovery:
    """One recovery of one folder. The attributes are what its steps pass on to each other."""

    def __init__(self, disk: Disk, folder: str, interval_bytes: int, expiration_ms: int, now_ms: int) -> None:
        self._disk = disk
        self._folder = folder
        self._expiration_ms = expiration_ms
        self._now_ms = now_ms
        self._names = disk.names(folder) if disk.exists(folder) else []
        self._segments = [Segment(disk, folder, base, interval_bytes) for base in self._offsets(SEGMENT_SUFFIX)]
        for gap in self._offsets(GAP_SUFFIX):
            if self._segments and gap >= self._segments[0].base:
                self._segments[self._segment_of(gap)].has_gaps = True
        self._producers = ProducerStates(expiration_ms)
        self._aborted = AbortedIndexes()
        self._epochs = EpochCache()
        self._voters = VoterRecovery(disk, folder, self._names)
        self._removed = False  # whether any bytes or files were removed
        self._point_saved = False

    async def run(
        self, point: RecoveryPoint | None, *, clean: bool, may_truncate: bool = True, marked: int | None = None
    ) -> Recovered:
        """`may_truncate`: bad bytes above the point can be a torn tail, unless the stop was `clean` or they lie at or
        before an offset that was `marked` as damaged."""
        self._may_truncate = may_truncate and not clean and marked != ANYWHERE
        self._marked = marked
        point = self._lower_to_truncation(point)
        claimed = point.offset if point is not None else 0
        if not self._segments:
            return await self._recover_without_segments(claimed)
        first = self._segments[0].base
        target = max(first, claimed) if point is not None else first
        try:
            number = self._segment_of(target)
            await self._load_state(target, number)
            position = await self._locate(target, number)
        except DamageFound as found:
            return self._recovered(point, max(claimed, found.damage.offset), found.damage)
        end = target
        if not (clean and point is not None and number == len(self._segments) - 1 and position == self._last.size):
            try:
                end = await self._scan(target, number, position)
            except DamageFound as found:
                return self._recovered(point, found.damage.offset, found.damage)
            self._remove_stray_files(end)
            if end > target:
                await self._write_back(target, end, number, position)
            if await self._voters.rewrite_files() or end > target or self._removed:
                await self._sync()
        return self._recovered(point, end, None)

    def _lower_to_truncation(self, point: RecoveryPoint | None) -> RecoveryPoint | None:
        """The recovery point, or the offset to which the log was truncated after the point was recorded."""
        marked = TRUNCATED_NAME in self._names
        self._truncated_at = truncation.load_mark(self._disk, self._folder) if marked else None
        if point is None or self._truncated_at is None or self._truncated_at >= point.offset:
            return point
        return RecoveryPoint(offset=self._truncated_at, start=min(point.start, self._truncated_at))

    async def _recover_without_segments(self, claimed: int) -> Recovered:
        damage = None
        if claimed:
            reason = f"there is no segment file, although everything below offset {claimed} was durable"
            damage = Damage(file=self._folder, position=0, offset=0, reason=reason)
        else:
            await self._voters.rewrite_files()
        return Recovered(producers=self._producers, end=claimed, damage=damage, truncated_at=self._truncated_at)

    def _recovered(self, point: RecoveryPoint | None, end: int, damage: Damage | None) -> Recovered:
        for segment in self._segments[-1:]:
            if segment.indexes is None:
                segment.begin_indexes()
            if segment.size >= BATCH_HEADER_BYTES:
                segment.first_timestamp = read_header(segment.file.read(0, BATCH_HEADER_BYTES)).base_timestamp
        start = max(self._segments[0].base, point.start if point is not None else 0)
        past_damage = None
        if damage is not None and (point is None or damage.offset >= point.offset):
            past_damage = RecoveryPoint(offset=damage.offset + 1, start=min(start, damage.offset))
        self._epochs.advance_start(start)
        self._aborted.truncate_to(end, self._last.base)
        return Recovered(
            segments=self._segments,
            start=min(start, end),
            end=end,
            epochs=self._epochs,
            producers=self._producers,
            aborted=self._aborted,
            voter_sets=self._voters.sets,
            damage=damage,
            point_past_damage=past_damage,
            point_saved=self._point_saved,
            truncated_at=self._truncated_at,
        )

    @property
    def _last(self) -> Segment:
        return self._segments[-1]

    def _offsets(self, suffix: str) -> list[int]:
        return offsets_named(self._names, suffix)

    def _segment_of(self, offset: int) -> int:
        """The number of the segment that holds `offset`."""
        return max(number for number, segment in enumerate(self._segments) if segment.base <= offset)

    async def _load_state(self, target: int, number: int) -> None:
        """Load voters, producers, aborted transactions and epochs as of `target`, which lies in segment `number`.

        They come from their files; where the files end earlier, the batches up to `target` are replayed.
        """
        unknown = await self._voters.load(target, self._segments)
        if unknown is not None:
            reason = "the voters from this offset on cannot be read, neither from this file nor from their batch"
            raise DamageFound(Damage(file=self._voters.path_of(unknown), position=0, offset=unknown, reason=reason))
        snapshot_end = self._load_producers(target)
        self._aborted = aborted_at_open(self._disk, self._names, self._segments, number, target)
        has_epochs = self._load_epochs()
        self._epochs.truncate_to(target)
        since = min(snapshot_end, target if has_epochs else self._segments[0].base)
        self._point_saved = since == target
        if self._point_saved:
            return
        first = self._segment_of(max(since, self._segments[0].base))  # retention may have passed the last snapshot
        for segment in self._segments[first : number + 1]:
            async for batch in walk_in_turns(segment.file, 0, segment.size, check=False):
                if batch.problem is not None or batch.header is None:
                    break  # damage is reported by `_locate`, by reads and by `verify`
                header = batch.header
                if header.base_offset >= target:
                    return
                try:
                    if header.base_offset >= snapshot_end:
                        self._producers.replay(header, batch.data, self._now_ms)
                except CorruptBatch:
                    break  # an unreadable marker: also reported by reads and by `verify`
                self._add_epoch(header)

    def _load_producers(self, target: int) -> int:
        found = last_snapshot(self._disk, self._folder, self._names, target, self._expiration_ms)
        if found is None:
            return self._segments[0].base
        snapshot_end, self._producers = found
        return snapshot_end

    def _load_epochs(self) -> bool:
        if EPOCHS_NAME not in self._names:
            return False
        try:
            self._epochs = EpochCache.load(read_file(self._disk, f"{self._folder}/{EPOCHS_NAME}"))
        except Unreadable:
            return False
        return True

    async def _locate(self, target: int, number: int) -> int:
        """The position of the batch at `target` in segment `number`; loads the indexes of that segment."""
        segment = self._segments[number]
        indexes = segment.load_blocking()
        if indexes is not None:
            try:
                # at least the last batch below the target is read: it is the one most likely to be bad
                return await self._locate_from(segment, indexes.truncate_to(max(segment.base, target - 1)), target)
            except DamageFound:
                pass  # the index may be wrong: search again without it
        segment.begin_indexes()
        return await self._locate_from(segment, (segment.base, 0), target)

    async def _locate_from(self, segment: Segment, begin: tuple[int, int], target: int) -> int:
        # Checksums are compared here, too: with a wrong length or offset below the point the scan would begin at the
        # wrong byte, and truncate good batches.
        expected, position = begin
        async for batch in walk_in_turns(segment.file, position, segment.size, check=True):
            header = batch.header
            if batch.problem is not None or header is None:
                if expected < target:
                    raise self._damaged(segment, position, expected, batch.problem)
                break
            if expected >= target:
                break
            if not self._continues(segment, header, expected) or header.last_offset >= target:
                offsets = f"offsets {header.base_offset} to {header.last_offset}"
                reason = f"the batch has {offsets}, expected {expected} to at most {target - 1}"
                raise self._damaged(segment, position, expected, reason)
            self._add_to_indexes(segment, batch)
            expected = header.last_offset + 1
            position += header.size
        if expected < target:
            reason = f"the segment ends here, although everything below offset {target} was durable"
            raise self._damaged(segment, position, expected, reason)
        return position

    def _damaged(self, segment: Segment, position: int, offset: int, reason: str | None) -> DamageFound:
        file = segment.path_of(SEGMENT_SUFFIX)
        return DamageFound(Damage(file=file, position=position, offset=offset, reason=reason or "unreadable"))

    async def _scan(self, target: int, first: int, position: int) -> int:
        """Check every batch from `target` on, at `position` in the segment with number `first`; truncate at a bad one.

        Returns the log end.
        """
        expected = target
        for number in range(first, len(self._segments)):
            segment = self._segments[number]
            if number > first:
                if segment.base != expected:
                    problem = f"the segment begins at offset {segment.base}, but the one before it ends at {expected}"
                    self._raise_unless_torn(segment, 0, expected, problem)
                    self._log_truncation(number, 0, expected, problem)
                    self._remove_segments(number)
                    break
                segment.begin_indexes()
                position = 0
            async for batch in walk_in_turns(segment.file, position, segment.size, check=True):
                header = batch.header
                bad = batch.problem or self._problem(segment, batch, expected)
                if bad is not None or header is None:
                    problem = bad or "unreadable"
                    self._raise_unless_torn(segment, batch.position, expected, problem)
                    self._log_truncation(number, batch.position, expected, problem)
                    segment.file.truncate(batch.position)
                    segment.truncated(batch.position)
                    self._removed = True
                    self._remove_segments(number + 1)
                    return expected
                self._add_to_indexes(segment, batch)
                self._add_epoch(header)
                if (aborted := self._producers.replay(header, batch.data, self._now_ms)) is not None:
                    self._aborted.add(segment.base, aborted)
                expected = header.last_offset + 1
        return expected

    def _raise_unless_torn(self, segment: Segment, position: int, expected: int, problem: str) -> None:
        """Bad bytes that cannot be a torn tail are damage."""
        if not self._may_truncate or (self._marked is not None and expected <= self._marked):
            raise self._damaged(segment, position, expected, problem)

    def _log_truncation(self, number: int, position: int, end: int, problem: str) -> None:
        removed = [self._segments[number].size - position, *(segment.size for segment in self._segments[number + 1 :])]
        logger.warning(
            "torn tail: %s at byte %d: %s; truncating the log to offset %d, which removes %d bytes from %d segment(s)",
            self._segments[number].path_of(SEGMENT_SUFFIX),
            position,
            problem,
            end,
            sum(removed),
            len(removed),
        )

    def _problem(self, segment: Segment, batch: WalkedBatch, expected: int) -> str | None:
        """What is wrong with a whole batch above the point, if anything. Takes in the voters that the batch sets."""
        header = batch.header
        assert header is not None
        if not self._continues(segment, header, expected) or header.leader_epoch < self._epochs.last:
            return (
                f"the batch with offset {header.base_offset}, epoch {header.leader_epoch} does not follow "
                f"offset {expected - 1}, epoch {self._epochs.last}"
            )
        return self._voters.scanned(header.base_offset, batch.data) if header.is_control else None

    def _continues(self, segment: Segment, header: BatchHeader, expected: int) -> bool:
        """Whether a batch begins at `expected`, where the one before it ended, or behind a recorded gap."""
        if header.base_offset == expected or not segment.has_gaps:
            return header.base_offset == expected
        return read_gap(self._disk, self._folder, expected) == header.base_offset

    def _remove_segments(self, number: int) -> None:
        """Remove a segment and all after it."""
        for segment in self._segments[number:]:
            segment.remove_files()
            segment.remove_aborted_index()
            self._removed = True
        del self._segments[number:]

    def _remove_stray_files(self, end: int) -> None:
        for name in stray_files(self._names, [segment.base for segment in self._segments], end):
            if self._disk.exists(f"{self._folder}/{name}"):
                self._disk.remove(f"{self._folder}/{name}")
                self._removed = True

    async def _write_back(self, target: int, end: int, first: int, position: int) -> None:
        """Rewrite what was scanned, so that the following fsync covers it."""
        for segment in self._segments[first:]:
            await write_back(segment.file, position, segment.size)
            position = 0
        gaps = [gap for gap in self._offsets(GAP_SUFFIX) if target <= gap < end]
        await write_gaps_back(self._disk, self._folder, gaps)

    async def _sync(self) -> None:
        for segment in self._segments:
            if segment.indexes is not None:
                await segment.file.sync()
        await self._disk.sync_dir(self._folder)
        await self._disk.sync_dir(self._folder.rpartition("/")[0])

    def _add_to_indexes(self, segment: Segment, batch: WalkedBatch) -> None:
        header = batch.header
        assert header is not None
        assert segment.indexes is not None
        segment.indexes.add_batch(header.base_offset, batch.position, header.size, header.max_timestamp)

    def _add_epoch(self, header: BatchHeader) -> None:
        if header.leader_epoch > self._epochs.last:
            self._epochs.begin(header.leader_epoch, header.base_offset)


def unreadable_log(folder: str, point: RecoveryPoint | None, expiration_ms: int, error: OSError) -> Recovered:
    """A log whose files raise I/O errors: nothing can be read or appended, and nothing was changed."""
    damage = Damage(file=str(error.filename or folder), position=0, offset=0, reason=error.strerror or str(error))
    end = 0 if point is None else point.offset
    return Recovered(producers=ProducerStates(expiration_ms), end=end, damage=damage)
