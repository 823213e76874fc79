"""One share partition on the leader of its topic partition: the state machine, its reads, its writes and its timer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

from tailrace.broker.partitions.partition import Partition
from tailrace.broker.queues.state_calls import ShareStates
from tailrace.log.log import Read
from tailrace.log.state.aborted_index import Aborted
from tailrace.model.faults import Fault, FencedLeaderEpoch, FencedStateEpoch, InvalidRequest, NotLeader
from tailrace.model.limits import KiB
from tailrace.model.share_settings import ShareSettings
from tailrace.ports import Clock
from tailrace.ports.disk import Buffer
from tailrace.queues.rules import ShareRules
from tailrace.queues.share_partition import (
    RUNS_MAX,
    Acknowledgement,
    Acquired,
    DeadLetter,
    DeliveryTurn,
    SharePartition,
    Span,
    Write,
)
from tailrace.queues.state import ShareKey, ShareState, StateBatch
from tailrace.records.header import BatchHeader
from tailrace.records.opened import batches

logger: Final = logging.getLogger(__name__)

READ_MIN_BYTES: Final = KiB  # the log is read in pieces: how many bytes the wanted records take is not known
READ_FIRST_BYTES: Final = 64 * KiB  # at most; also of records that come back, which lie scattered
READ_BYTES_PER_RECORD: Final = 128  # a guess for the first piece; each piece is larger than the one before
READ_GROWTH: Final = 4
PROGRESS_STORED_AFTER_S: Final = 1.0
STORE_RETRY_S: Final = 1.0  # of what dead letters wait for; each attempt has retries of its own
DEAD_LETTER_RETRY_MIN_S: Final = 0.1
DEAD_LETTER_RETRY_MAX_S: Final = 10.0
FENCED: Final = (FencedLeaderEpoch, FencedStateEpoch, InvalidRequest)  # the state was taken over, reset or deleted


class TakeOptions(NamedTuple):
    """How much a member wants of one partition."""

    records: int
    max_bytes: int
    exact: bool  # not more than `records`; otherwise up to the end of a batch


class Taken(NamedTuple):
    """Whole batches, and which of their records were acquired."""

    records: Sequence[Buffer]
    acquired: Sequence[Acquired]

    @property
    def total(self) -> int:
        return sum(one.last - one.first + 1 for one in self.acquired)

    @property
    def bytes(self) -> int:
        return sum(map(len, self.records))


class Passed(NamedTuple):
    """A batch that was offered to the state machine."""

    batch: memoryview
    header: BatchHeader


class DeadLetterWriter(Protocol):
    async def write(self, key: ShareKey, partition: Partition, letter: DeadLetter, settings: ShareSettings) -> None:
        """Copy records to the dead letter topic; returns when the copies are committed. Raises a fault if it could
        not do so, and is called again later."""


class LedShare:
    def __init__(
        self,
        key: ShareKey,
        partition: Partition,
        state: ShareState,
        states: ShareStates,
        settings: Callable[[], ShareSettings],
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        dead_letters: DeadLetterWriter,
        fenced: Callable[["LedShare"], None],
    ) -> None:
        self.key = key
        self.partition = partition
        self.epoch = partition.epoch  # it serves in this leader epoch only
        self.used_at = clock.monotonic()
        self._state_epoch = state.state_epoch
        self._states = states
        self._settings = settings
        self._clock = clock
        self._spawn = spawn
        self._dead_letters = dead_letters
        self._fenced = fenced  # called when another leader, or a reset of the offsets, has taken over
        self._watchers: dict[Callable[[], None], None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._stored_progress = state.start, state.complete_count
        self._progress_timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._was_full = False
        self._rules = settings(), rules_of(settings())
        turn = self._turn()
        self._machine = SharePartition(state, turn)
        self._done(turn)

    @property
    def is_current(self) -> bool:
        return not self._closed and self.partition.leads and self.partition.epoch == self.epoch

    @property
    def is_idle(self) -> bool:
        machine = self._machine
        return not (self._watchers or machine.locked or machine.condemned)

    @property
    def machine(self) -> SharePartition:
        return self._machine

    @property
    def waiting(self) -> Collection[Callable[[], None]]:
        """Those to be notified when there may be more to acquire."""
        return self._watchers

    @property
    def readable(self) -> int:
        """The offset at which members stop to read."""
        return self.partition.readable(committed=self._settings().read_committed)

    @property
    def rules(self) -> ShareRules:
        settings = self._settings()
        if self._rules[0] is not settings:
            self._rules = settings, rules_of(settings)
        return self._rules[1]

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._progress_timer is not None:
            self._progress_timer.cancel()
        self._notify()

    # Watching

    def watch(self, notify: Callable[[], None]) -> None:
        """Call `notify` once there may be something to acquire. Of several watchers the first is called, which then
        either takes it or leaves it to the next (`unwatch`): a record does not wake all members that wait for one."""
        if not self._watchers:
            self.partition.watch(self._notify)
        self._watchers[notify] = None

    def unwatch(self, notify: Callable[[], None]) -> None:
        self._watchers.pop(notify, None)
        if not self._watchers:
            self.partition.unwatch(self._notify)
        else:
            self._notify()

    def _notify(self) -> None:
        """Something may have become available, or this is no longer the leader."""
        if self._watchers and (not self.is_current or self._has_some()):
            next(iter(self._watchers))()

    def _has_some(self) -> bool:
        wanted = self._machine.wanted(0, self._turn())
        return wanted is not None and wanted < self.readable

    # Events

    async def take(self, member: str, options: TakeOptions) -> Taken:
        """Acquire what is available now, within the limits."""
        self._require_current()
        turn = self._turn()
        self.used_at = turn.now
        self._machine.tick(turn)
        self._machine.trim(self.partition.log.start, turn)
        acquired: list[Acquired] = []
        found: list[Buffer] = []
        room, left, offset, more = options.records, options.max_bytes, 0, True
        piece = max(READ_MIN_BYTES, min(READ_BYTES_PER_RECORD * room, READ_FIRST_BYTES))
        committed = self._rules[0].read_committed
        try:
            while more and room > 0 and left > 0:
                wanted = self._machine.wanted(offset, turn)
                if wanted is None or wanted >= self.partition.readable(committed=committed):
                    break
                read = self._read(wanted, min(piece, left), committed)
                if read is None:
                    self._done(turn)
                    turn = self._turn()  # nothing is carried out twice if the read fails
                    read = await self._read_cold(wanted, min(piece, left), committed)
                    self._require_current()
                    turn = self._turn()
                (data, offset), aborted = read
                if not data or (found and len(data) > left):
                    break
                passed: list[Passed] = []
                had = acquired[-1:]
                before = len(acquired)
                spans = _spans(data, aborted, passed)
                more = self._machine.acquire(member, wanted, spans, room, acquired, turn, exact=options.exact)
                new = acquired[before:] if had == acquired[before - 1 : before] else acquired[before - 1 :]
                if new:
                    found.append(_overlapping(data, passed, new))
                    left -= len(found[-1])
                    room = options.records - sum(one.last - one.first + 1 for one in acquired)
                if offset >= self._machine.end:
                    piece *= READ_GROWTH  # records that come back lie scattered; new ones do not
        finally:
            self._done(turn)
        self._log_if_full()
        return Taken(found, acquired)

    def acknowledge(self, member: str, acknowledged: Sequence[Acknowledgement]) -> Awaitable[None]:
        """Decide about these records at once: records that the member acquires later are not affected. Returns when
        the decisions are durable; after a fault none of the acknowledgements counts.

        Records below the start are finished already, and the machine ignores what is said about them. But it may have
        given them up a moment ago: then this, too, returns only when it is durable that they are finished."""
        self._require_current()
        turn = self._turn()
        self.used_at = turn.now
        self._machine.tick(turn)
        try:
            write = self._machine.acknowledge(member, acknowledged, turn)
        finally:
            self._done(turn)
        return self._finish(write, is_stored=not write.batches and self._is_stored(acknowledged))

    def _is_stored(self, acknowledged: Sequence[Acknowledgement]) -> bool:
        """Whether the stored start is above all of these offsets that are below the machine's start."""
        stored_start, _ = self._stored_progress
        return all(one.last < stored_start or one.first >= self._machine.start for one in acknowledged)

    async def _finish(self, write: Write, *, is_stored: bool) -> None:
        if is_stored:
            return
        fault = await self._store(write.batches, self._machine.progress(write))
        turn = self._turn()
        self._machine.written(write, turn, ok=fault is None)
        self._done(turn)
        self._notify()
        if fault is not None:
            raise fault

    def left(self, member: str) -> None:
        """A member's session ended: release what it holds."""
        if self.is_current:
            turn = self._turn()
            self._machine.left(member, turn)
            self._done(turn)
            self._notify()

    def not_delivered(self, member: str, taken: Taken) -> None:
        """A member's session ended while records were taken for it."""
        if self.is_current:
            turn = self._turn()
            self._machine.not_delivered(member, taken.acquired, turn)
            self._done(turn)
            self._notify()

    def _tick(self) -> None:
        self._timer = None
        if self.is_current:
            turn = self._turn()
            self._machine.tick(turn)
            self._done(turn)
            self._notify()

    # Effects

    def _turn(self) -> DeliveryTurn:
        return DeliveryTurn(self._clock.monotonic(), self._clock.wall_ms(), self.rules)

    def _done(self, turn: DeliveryTurn) -> None:
        """Carry out the effects of a turn."""
        if turn.changed:
            self._spawn(self._store_later(turn.changed, self._machine.progress(), turn.dead_letters))
        else:
            self._write_dead_letters(turn.dead_letters)
        self._set_timer(turn)
        self._store_progress_soon()

    def _set_timer(self, turn: DeliveryTurn) -> None:
        lock_end, wakes_ms = self._machine.alarm
        alarms = [lock_end] if lock_end is not None else []
        if wakes_ms is not None:
            alarms.append(turn.now + max(0, wakes_ms - turn.wall_ms) / 1000)
        if not alarms:
            return
        at = min(alarms)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_later(max(0.0, at - turn.now), self._tick)

    def _store_progress_soon(self) -> None:
        """Writes that overlap do not count what the others finish, and offsets without a record finish without a
        write. So a while after the last write the progress is stored once more, if it is not what was stored."""
        if self._progress_timer is None and self.is_current and self._machine.progress() != self._stored_progress:
            loop = asyncio.get_running_loop()
            self._progress_timer = loop.call_later(PROGRESS_STORED_AFTER_S, self._store_progress, self._stored_progress)

    def _store_progress(self, stored_before: tuple[int, int]) -> None:
        self._progress_timer = None
        if not self.is_current:
            return
        progress = self._machine.progress()
        if stored_before != self._stored_progress:
            self._store_progress_soon()
        elif progress != self._stored_progress:
            self._spawn(self._store_later((), progress))

    async def _store_later(
        self, changed: Sequence[StateBatch], progress: tuple[int, int], letters: Sequence[DeadLetter] = ()
    ) -> None:
        """Store what has taken effect. If that fails, a new leader may repeat deliveries or count one less; so dead
        letters are written only after it is stored, or the new leader would deliver records that have one."""
        fault = await self._store(changed, progress)
        if fault is not None and self.is_current:
            logger.warning("share group %s: cannot store released records: %s", self.key, fault)
        while fault is not None and letters and self.is_current:
            await asyncio.sleep(STORE_RETRY_S)
            fault = await self._store(changed, progress)
        self._store_progress_soon()
        if fault is None:
            self._write_dead_letters(letters)

    def _write_dead_letters(self, letters: Sequence[DeadLetter]) -> None:
        for letter in letters:
            self._spawn(self._write_dead_letter(letter))

    async def _store(self, changed: Sequence[StateBatch], progress: tuple[int, int]) -> Fault | None:
        ordered = sorted(changed)
        try:
            await self._states.write(self.key, self._state_epoch, self.epoch, *progress, ordered)
        except FENCED as fault:
            self._fenced(self)
            return NotLeader(f"{self.key}: {fault}")
        except Fault as fault:
            return fault.with_traceback(None)
        self._stored_progress = max(self._stored_progress, progress)
        return None

    async def _write_dead_letter(self, letter: DeadLetter) -> None:
        """Write dead letters, again and again if need be: until they are written, their records are not archived."""
        delay_s = DEAD_LETTER_RETRY_MIN_S
        while self.is_current:
            try:
                await self._dead_letters.write(self.key, self.partition, letter, self._settings())
                break
            except Fault as fault:
                logger.error(
                    "share group %s: cannot write the dead letters of offsets %d to %d of %s, retrying in %.1f s: %s",
                    self.key.group,
                    letter.first,
                    letter.last,
                    self.partition.name,
                    delay_s,
                    fault,
                )
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, DEAD_LETTER_RETRY_MAX_S)
        if self.is_current:
            turn = self._turn()
            self._machine.dead_lettered(letter.first, letter.last, turn)
            self._done(turn)
            self._notify()

    def _require_current(self) -> None:
        """A leader that was replaced without knowing it must not deliver what the next one has finished."""
        self.partition.require_leader()
        if not self.is_current:
            raise NotLeader(f"{self.partition.name}: leader epoch {self.epoch} has ended")
        if not self.partition.hears_quorum():
            raise NotLeader(f"{self.partition.name}: this broker has lost contact with the majority")

    def _log_if_full(self) -> None:
        if self._machine.is_full != self._was_full:
            self._was_full = self._machine.is_full
            if self._was_full:
                logger.warning(
                    "share group %s: %d runs of records are unfinished, no new records are delivered",
                    self.key,
                    RUNS_MAX,
                )

    # Reading

    def _read(self, offset: int, max_bytes: int, committed: bool) -> tuple[Read, list[Aborted]] | None:
        """None: it is not in the page cache."""
        read = self.partition.read(offset, max_bytes, committed=committed)
        if read is None or not (committed and read.data):
            return None if read is None else (read, [])
        aborted = self.partition.log.aborted_between(offset, read.next_offset)
        return None if aborted is None else (read, aborted)

    async def _read_cold(self, offset: int, max_bytes: int, committed: bool) -> tuple[Read, list[Aborted]]:
        log = self.partition.log
        while True:
            swaps = log.swaps
            read = await self.partition.read_cold(offset, max_bytes, committed=committed)
            if not (committed and read.data):
                return read, []
            aborted = await log.aborted_between_cold(offset, read.next_offset)
            if swaps == log.swaps:  # else compaction may have removed what only the old bytes need
                return read, aborted


def rules_of(settings: ShareSettings) -> ShareRules:
    return ShareRules(
        lock_ms=settings.record_lock_duration_ms,
        delivery_limit=settings.delivery_count_limit,
        locks_max=settings.partition_max_record_locks,
        backoff_ms=settings.retry_backoff_ms,
        backoff_max_ms=settings.retry_backoff_max_ms,
        backoff_multiplier=settings.retry_backoff_multiplier,
        dead_letters=bool(settings.dead_letter_topic),
    )


def _deliverable(header: BatchHeader, aborted: Sequence[Aborted]) -> bool:
    if header.is_control or header.records == 0:  # compaction leaves empty batches
        return False
    return not (
        header.is_transactional
        and any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset <= one.last_offset
            for one in aborted
        )
    )


def _spans(data: Buffer, aborted: Sequence[Aborted], passed: list[Passed]) -> Iterator[Span]:
    """The batches, one by one; those that were asked for are added to `passed`."""
    for batch, header in batches(data):
        passed.append(Passed(batch, header))
        yield Span(header.base_offset, header.last_offset, _deliverable(header, aborted))


def _overlapping(data: Buffer, passed: Sequence[Passed], acquired: Sequence[Acquired]) -> Buffer:
    """The batches with acquired records."""
    kept: list[memoryview] = []
    place = 0
    for batch, header in passed:
        while place < len(acquired) and acquired[place].last < header.base_offset:
            place += 1
        if place < len(acquired) and acquired[place].first <= header.last_offset:
            kept.append(batch)
    if len(kept) == len(passed):
        return memoryview(data)[: sum(map(len, kept))]
    return kept[0] if len(kept) == 1 else b"".join(kept)
