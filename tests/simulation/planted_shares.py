"""Bugs to plant in share groups: in the machine of a share partition, at its leader, and at its coordinator."""

import asyncio
from bisect import insort
from contextlib import AbstractContextManager
from typing import Final

from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.queues.dead_letters import DeadLetters
from tailrace.broker.queues.led_share import LedShare
from tailrace.broker.services.queues import Queues
from tailrace.queues import share_states
from tailrace.queues.delivery import Cause
from tailrace.queues.runs import Run
from tailrace.queues.share_partition import Acquired, DeliveryTurn, SharePartition, Write
from tailrace.queues.state import DeliveryState, StateBatch
from tests.simulation.planting import Mutant, replaced

LATE_S: Final = 2.0  # a broker that writes a dead letter at once is hardly ever killed before it has


def record_delivered_to_two_members() -> AbstractContextManager[None]:
    """A record stays available while a member holds it."""
    right = SharePartition._lock

    def lock(
        machine: SharePartition, member: str, first: int, last: int, acquired: list[Acquired], turn: DeliveryTurn
    ) -> None:
        right(machine, member, first, last, acquired, turn)
        run = machine._runs.at(first)
        run.state = DeliveryState.AVAILABLE
        machine.locked -= len(run)
        insort(machine._ready, run.first)

    return replaced(SharePartition, "_lock", lock)


def delivery_count_that_falls() -> AbstractContextManager[None]:
    """A delivery that was released does not count."""
    right = SharePartition._leave_lock

    def leave(machine: SharePartition, run: Run, cause: Cause, not_before: int, turn: DeliveryTurn) -> None:
        run.count -= cause is Cause.RELEASED
        right(machine, run, cause, not_before, turn)

    return replaced(SharePartition, "_leave_lock", leave)


def resting_record_forgotten_by_the_next_leader() -> AbstractContextManager[None]:
    right = SharePartition._load

    def load(machine: SharePartition, batch: StateBatch, turn: DeliveryTurn) -> None:
        right(machine, batch, turn)
        machine._resting.clear()

    return replaced(SharePartition, "_load", load)


def rest_forgotten_by_the_next_leader() -> AbstractContextManager[None]:
    right = SharePartition._load

    def load(machine: SharePartition, batch: StateBatch, turn: DeliveryTurn) -> None:
        right(machine, batch._replace(not_before=-1), turn)

    return replaced(SharePartition, "_load", load)


def archived_before_its_dead_letter_is_written() -> AbstractContextManager[None]:
    right = DeadLetters.write
    kept: list[asyncio.Future[None]] = []  # or they would be collected at any time

    async def write_late(letters: DeadLetters, *arguments: object) -> None:
        await asyncio.sleep(LATE_S)
        await right(letters, *arguments)  # type: ignore[arg-type]

    async def write(letters: DeadLetters, *arguments: object) -> None:
        writing = asyncio.ensure_future(write_late(letters, *arguments))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        kept.append(writing)

    return replaced(DeadLetters, "write", write)


def dead_letter_before_its_record_is_given_up() -> AbstractContextManager[None]:
    """A dead letter is written while the next leader may still deliver the record."""

    def done(share: LedShare, turn: DeliveryTurn) -> None:
        if turn.changed:
            share._spawn(share._store_later(turn.changed, share._machine.progress()))
        share._write_dead_letters(turn.dead_letters)
        share._set_timer(turn)
        share._store_progress_soon()

    return replaced(LedShare, "_done", done)


def lock_that_outlives_its_session() -> AbstractContextManager[None]:
    return replaced(Queues, "leave", lambda *_: None)


def accept_forgotten_after_a_crash() -> AbstractContextManager[None]:
    """Acknowledgements are answered before they are stored."""

    async def finish(share: LedShare, write: Write, *, is_stored: bool) -> None:
        if write.batches:
            share._spawn(share._store_later(write.batches, share._machine.progress(write)))
            turn = share._turn()
            share._machine.written(write, turn, ok=True)
            share._done(turn)
            share._notify()

    return replaced(LedShare, "_finish", finish)


def deposed_leader_still_writes() -> AbstractContextManager[None]:
    return replaced(share_states, "_check_leader_epoch", lambda *_: None)


def waiting_fetch_not_woken() -> AbstractContextManager[None]:
    return replaced(LedShare, "_notify", lambda _: None)


def stuck_record_stops_those_behind_it() -> AbstractContextManager[None]:
    """Finished records count as locks, as long as one before them is not finished."""
    right = SharePartition.wanted

    def wanted(machine: SharePartition, offset: int, turn: DeliveryTurn) -> int | None:
        found = right(machine, offset, turn)
        is_new = found is not None and found >= machine.end
        return None if is_new and machine.end - machine.start >= turn.rules.locks_max else found

    return replaced(SharePartition, "wanted", wanted)


def group_begins_by_settings_that_its_leader_does_not_have() -> AbstractContextManager[None]:
    """A leader whose metadata lags lets the group begin at `latest`."""

    async def until_applied(progress: MetadataProgress, end: int) -> None:
        pass

    return replaced(MetadataProgress, "until_applied", until_applied)


MUTANTS: tuple[Mutant, ...] = (
    record_delivered_to_two_members,
    delivery_count_that_falls,
    resting_record_forgotten_by_the_next_leader,
    rest_forgotten_by_the_next_leader,
    archived_before_its_dead_letter_is_written,
    dead_letter_before_its_record_is_given_up,
    lock_that_outlives_its_session,
    accept_forgotten_after_a_crash,
    deposed_leader_still_writes,
    waiting_fetch_not_woken,
    stuck_record_stops_those_behind_it,
    group_begins_by_settings_that_its_leader_does_not_have,
)
