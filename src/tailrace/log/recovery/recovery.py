"""Opening a log: find out what is in its folder, and put right what a crash left.

The recovery point divides the log. Everything below it was durable, its indexes, producer snapshot and epoch cache
too: it is not read again, but for the few kilobytes from the last index entry on that lead to the point. After an
unclean stop everything above it is scanned: batches must be whole, fit their checksums, follow on each other, and have
epochs that do not fall. The first one that is not so was being written when the power went, and nobody was told that it
is safe: the log is cut there. Bad bytes *below* the point are another matter: somebody was told. Then nothing is
changed, and the log is `Damage`d: readable below, closed to writes. So it is with bad bytes anywhere after a clean
stop, when nothing was being written, and where nobody knows any more what was promised: then nothing is ever cut.

Rules: a good batch is never cut away, unless a bad one stands before it. What was scanned is written back and synced
before it counts as durable (`write_back`). Between segments above the point there is no gap: a segment that does not
begin where the last one ends is a leftover of a truncation that came back, or follows on lost bytes, and goes. The loop
gets its turn every chunk.
"""

import logging
from typing import Final

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import CUT_NAME, EPOCHS_NAME, GAP_SUFFIX, SEGMENT_SUFFIX, offsets_named
from tailrace.log.recovery.damage_mark import ANYWHERE
from tailrace.log.recovery.found import Damage, Recovered, RecoveryPoint
from tailrace.log.recovery.found_aborted import found_aborted
from tailrace.log.recovery.found_voters import FoundVoters
from tailrace.log.recovery.segment_walk import Found, walk_in_turns
from tailrace.log.recovery.stray_files import strays
from tailrace.log.recovery.truncation_mark import load_cut
from tailrace.log.recovery.write_back import write_back
from tailrace.log.segment import Segment
from tailrace.log.state.aborted_index import AbortedIndexes
from tailrace.log.state.epochs import EpochCache
from tailrace.log.state.gaps import read_gap, write_gaps_back
from tailrace.log.state.producer_snapshots import last_snapshot
from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.disk import Disk, read_file
from tailrace.records.header import BatchHeader, read_header

logger: Final = logging.getLogger(__name__)


class Damaged(Exception):
    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage


class Recovery:
    """One opening of one folder; its state is what the steps hand on to each other."""

    def __init__(self, disk: Disk, folder: str, interval_bytes: int, expiration_ms: int, now_ms: int) -> None:
        self._disk = disk
        self._folder = folder
        self._expiration_ms = expiration_ms
        self._now_ms = now_ms
        self._names = disk.names(folder) if disk.exists(folder) else []
        self._segments = [Segment(disk, folder, base, interval_bytes) for base in self._offsets(SEGMENT_SUFFIX)]
        for gap in self._offsets(GAP_SUFFIX):
            if self._segments and gap >= self._segments[0].base:
                self._segments[self._home(gap)].has_gaps = True
        self._producers = ProducerStates(expiration_ms)
        self._aborted = AbortedIndexes()
        self._epochs = EpochCache()
        self._voters = FoundVoters(disk, folder, self._names)
        self._cut = False  # whether anything was taken away
        self._saved = False

    async def run(
        self, point: RecoveryPoint | None, *, clean: bool, may_cut: bool = True, marked: int | None = None
    ) -> Recovered:
        """`may_cut`: whether bad bytes above the point can be a torn tail; after a clean stop they cannot, nor where
        they were found before (`marked`)."""
        self._may_cut = may_cut and not clean and marked != ANYWHERE
        self._marked = marked
        point = self._before_cut(point)
        claimed = point.offset if point is not None else 0
        if not self._segments:
            return await self._nothing_found(claimed)
        first = self._segments[0].base
        target = max(first, claimed) if point is not None else first
        try:
            home = self._home(target)
            await self._remember(target, home)
            position = await self._find(target, home)
        except Damaged as found:
            return self._recovered(point, max(claimed, found.damage.offset), found.damage)
        end = target
        if not (clean and point is not None and home == len(self._segments) - 1 and position == self._last.size):
            try:
                end = await self._scan(target, home, position)
            except Damaged as found:
                return self._recovered(point, found.damage.offset, found.damage)
            self._remove_strays(end)
            if end > target:
                await self._write_back(target, end, home, position)
            if await self._voters.settle() or end > target or self._cut:
                await self._sync()
        return self._recovered(point, end, None)

    def _before_cut(self, point: RecoveryPoint | None) -> RecoveryPoint | None:
        """A log that was truncated since the point was recorded cannot be held to it."""
        self._cut_at = load_cut(self._disk, self._folder) if CUT_NAME in self._names else None
        if point is None or self._cut_at is None or self._cut_at >= point.offset:
            return point
        return RecoveryPoint(offset=self._cut_at, start=min(point.start, self._cut_at))

    async def _nothing_found(self, claimed: int) -> Recovered:
        damage = None
        if claimed:
            reason = f"no segment is there, though everything below {claimed} was durable"
            damage = Damage(file=self._folder, position=0, offset=0, reason=reason)
        else:
            await self._voters.settle()
        return Recovered(producers=self._producers, end=claimed, damage=damage, cut_at=self._cut_at)

    def _recovered(self, point: RecoveryPoint | None, end: int, damage: Damage | None) -> Recovered:
        for segment in self._segments[-1:]:
            if segment.indexes is None:
                segment.begin_indexes()
            if segment.size >= BATCH_HEADER_BYTES:
                segment.first_timestamp = read_header(segment.file.read(0, BATCH_HEADER_BYTES)).base_timestamp
        start = max(self._segments[0].base, point.start if point is not None else 0)
        held_to = None
        if damage is not None and (point is None or damage.offset >= point.offset):
            held_to = RecoveryPoint(offset=damage.offset + 1, start=min(start, damage.offset))
        self._epochs.advance_start(start)
        self._aborted.cut(end, self._last.base)
        return Recovered(
            segments=self._segments,
            start=min(start, end),
            end=end,
            epochs=self._epochs,
            producers=self._producers,
            aborted=self._aborted,
            voter_sets=self._voters.sets,
            damage=damage,
            held_to=held_to,
            saved=self._saved,
            cut_at=self._cut_at,
        )

    @property
    def _last(self) -> Segment:
        return self._segments[-1]

    def _offsets(self, suffix: str) -> list[int]:
        return offsets_named(self._names, suffix)

    def _home(self, offset: int) -> int:
        """Which segment holds `offset`."""
        return max(number for number, segment in enumerate(self._segments) if segment.base <= offset)

    async def _remember(self, target: int, home: int) -> None:
        """What voters, producers and epochs were at `target`: from their files, and where those end earlier, from
        batches."""
        untold = await self._voters.load(target, self._segments)
        if untold is not None:
            reason = "who votes from here on cannot be read"
            raise Damaged(Damage(file=self._voters.path_of(untold), position=0, offset=untold, reason=reason))
        have = self._load_producers(target)
        self._aborted = found_aborted(self._disk, self._names, self._segments, home, target)
        know = self._load_epochs()
        self._epochs.truncate_to(target)
        since = min(have, target if know else self._segments[0].base)
        self._saved = since == target
        if self._saved:
            return
        first = self._home(max(since, self._segments[0].base))  # retention may have gone past the last snapshot
        for number in range(first, home + 1):
            segment = self._segments[number]
            async for found in walk_in_turns(segment.file, 0, segment.size, check=False):
                if found.problem is not None or found.header is None:
                    break  # damage is looked for by `_find`, by reads and by `verify`
                header = found.header
                if header.base_offset >= target:
                    return
                try:
                    if header.base_offset >= have:
                        self._producers.replay(header, found.data, self._now_ms)
                except CorruptBatch:
                    break  # a marker that cannot be read: likewise
                self._note_epoch(header)

    def _load_producers(self, target: int) -> int:
        found = last_snapshot(self._disk, self._folder, self._names, target, self._expiration_ms)
        if found is None:
            return self._segments[0].base
        have, self._producers = found
        return have

    def _load_epochs(self) -> bool:
        if EPOCHS_NAME not in self._names:
            return False
        try:
            self._epochs = EpochCache.load(read_file(self._disk, f"{self._folder}/{EPOCHS_NAME}"))
        except Unreadable:
            return False
        return True

    async def _find(self, target: int, home: int) -> int:
        """The position of the batch at `target` in its segment, whose indexes are loaded by then."""
        segment = self._segments[home]
        indexes = segment.load_now()
        if indexes is not None:
            try:
                # at least the last batch below is looked at, as the one most likely to be wrong
                return await self._find_from(segment, indexes.rewind(max(segment.base, target - 1)), target)
            except Damaged:
                pass  # perhaps only the index is wrong
        segment.begin_indexes()
        return await self._find_from(segment, (segment.base, 0), target)

    async def _find_from(self, segment: Segment, begin: tuple[int, int], target: int) -> int:
        # checksums are compared here too: a wrong length or offset below the point must not make the scan begin at the
        # wrong byte, and cut there what is good
        expected, position = begin
        async for found in walk_in_turns(segment.file, position, segment.size, check=True):
            header = found.header
            if found.problem is not None or header is None:
                if expected < target:
                    raise self._damaged(segment, position, expected, found.problem)
                break
            if expected >= target:
                break
            if not self._continues(segment, header, expected) or header.last_offset >= target:
                reason = f"a batch with offsets {header.base_offset} to {header.last_offset}"
                raise self._damaged(segment, position, expected, reason)
            self._note(segment, found)
            expected = header.last_offset + 1
            position += header.size
        if expected < target:
            raise self._damaged(segment, position, expected, f"the file ends here, though {target} was durable")
        return position

    def _damaged(self, segment: Segment, position: int, offset: int, reason: str | None) -> Damaged:
        file = segment.path_of(SEGMENT_SUFFIX)
        return Damaged(Damage(file=file, position=position, offset=offset, reason=reason or "unreadable"))

    async def _scan(self, target: int, home: int, position: int) -> int:
        """Read everything from `target` on; cut at the first batch that is not right. The end."""
        expected = target
        for number in range(home, len(self._segments)):
            segment = self._segments[number]
            if number > home:
                if segment.base != expected:
                    self._refuse_to_cut(segment, 0, expected, f"it does not follow on offset {expected - 1}")
                    file = segment.path_of(SEGMENT_SUFFIX)
                    logger.warning("%s does not follow on offset %d: it goes, and all after it", file, expected - 1)
                    self._drop(number)
                    break
                segment.begin_indexes()
                position = 0
            async for found in walk_in_turns(segment.file, position, segment.size, check=True):
                header = found.header
                problem = found.problem or self._problem(segment, found, expected)
                if problem is not None or header is None:
                    problem = problem or "unreadable"
                    self._refuse_to_cut(segment, found.position, expected, problem)
                    self._report_cut(segment, found.position, expected, problem)
                    segment.file.truncate(found.position)
                    segment.cut(found.position)
                    self._cut = True
                    self._drop(number + 1)
                    return expected
                self._note(segment, found)
                self._note_epoch(header)
                if (aborted := self._producers.replay(header, found.data, self._now_ms)) is not None:
                    self._aborted.add(segment.base, aborted)
                expected = header.last_offset + 1
        return expected

    def _refuse_to_cut(self, segment: Segment, position: int, expected: int, problem: str) -> None:
        if not self._may_cut or (self._marked is not None and expected <= self._marked):
            raise self._damaged(segment, position, expected, problem)

    def _report_cut(self, segment: Segment, position: int, expected: int, problem: str) -> None:
        logger.warning(
            "%s at byte %d: %s; the log is cut here, at offset %d: %d bytes and later segments go",
            segment.path_of(SEGMENT_SUFFIX),
            position,
            problem,
            expected,
            segment.size - position,
        )

    def _problem(self, segment: Segment, found: Found, expected: int) -> str | None:
        """What is wrong with a whole batch above the point, if anything; voters that it names are noted."""
        header = found.header
        assert header is not None
        if not self._continues(segment, header, expected) or header.leader_epoch < self._epochs.last:
            return "a batch that does not follow on the one before"
        return self._voters.scanned(header.base_offset, found.data) if header.is_control else None

    def _continues(self, segment: Segment, header: BatchHeader, expected: int) -> bool:
        """Whether a batch begins where the one before it ended, or where a gap is written down."""
        if header.base_offset == expected or not segment.has_gaps:
            return header.base_offset == expected
        return read_gap(self._disk, self._folder, expected) == header.base_offset

    def _drop(self, number: int) -> None:
        """Remove a segment and all after it."""
        for segment in self._segments[number:]:
            segment.remove_files()
            segment.remove_aborted()
            self._cut = True
        del self._segments[number:]

    def _remove_strays(self, end: int) -> None:
        for name in strays(self._names, [segment.base for segment in self._segments], end):
            if self._disk.exists(f"{self._folder}/{name}"):
                self._disk.remove(f"{self._folder}/{name}")
                self._cut = True

    async def _write_back(self, target: int, end: int, home: int, position: int) -> None:
        """What was scanned counts as durable soon: make the sync that says so an honest one."""
        for number in range(home, len(self._segments)):
            segment = self._segments[number]
            await write_back(segment.file, position if number == home else 0, segment.size)
        gaps = [gap for gap in self._offsets(GAP_SUFFIX) if target <= gap < end]
        await write_gaps_back(self._disk, self._folder, gaps)

    async def _sync(self) -> None:
        for segment in self._segments:
            if segment.indexes is not None:
                await segment.file.sync()
        await self._disk.sync_dir(self._folder)
        await self._disk.sync_dir(self._folder.rpartition("/")[0])

    def _note(self, segment: Segment, found: Found) -> None:
        assert found.header is not None
        assert segment.indexes is not None
        segment.indexes.note(found.header.base_offset, found.position, found.header.size, found.header.max_timestamp)

    def _note_epoch(self, header: BatchHeader) -> None:
        if header.leader_epoch > self._epochs.last:
            self._epochs.begin(header.leader_epoch, header.base_offset)


def unreadable(folder: str, point: RecoveryPoint | None, expiration_ms: int, error: OSError) -> Recovered:
    """A log whose disk does not answer: nothing of it can be served or written, and nothing was changed."""
    damage = Damage(file=str(error.filename or folder), position=0, offset=0, reason=error.strerror or str(error))
    end = 0 if point is None else point.offset
    return Recovered(producers=ProducerStates(expiration_ms), end=end, damage=damage)
