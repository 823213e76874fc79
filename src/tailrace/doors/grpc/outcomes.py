"""What became of records that were sent to a producer."""

import asyncio
from collections.abc import Sequence

from tailrace.client.faults import ClientError
from tailrace.client.producer import NotWritten, Written
from tailrace.client.runs import Run

Outcome = Written | NotWritten
Waited = Sequence["asyncio.Future[Written]"]


async def outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """Wait until each record is durable, or is not: what became of each, in the order in which they were given."""
    first_of_each = await outcomes_of([run.written for run in runs])
    of_each = [_spread(len(run.places), first) for run, first in zip(runs, first_of_each, strict=True)]
    if len(runs) == 1:
        return of_each[0]
    found: dict[int, Outcome] = {}
    for run, ones in zip(runs, of_each, strict=True):
        found.update(zip(run.places, ones, strict=True))
    return [found[place] for place in range(len(found))]


def _spread(count: int, first: Outcome) -> list[Outcome]:
    """What became of the records of a run, by what became of the first."""
    if isinstance(first, NotWritten) or first.offset < 0:
        return [first] * count
    partition, offset = first
    return [Written(partition, offset + more) for more in range(count)]


async def outcomes_of(sent: Waited) -> list[Outcome]:
    """Wait until each is durable, or is not. If the caller gives up, the records are sent all the same."""
    try:
        return [written.result() if _is_written(written) else await _outcome(written) for written in sent]
    except asyncio.CancelledError:
        let_go(sent)
        raise


def let_go(sent: Waited) -> None:
    """Give up waiting for these records, without the loop's warning about failures that were never retrieved."""
    for written in sent:
        written.add_done_callback(lambda one: one.cancelled() or one.exception())


def _is_written(written: "asyncio.Future[Written]") -> bool:
    return written.done() and not written.cancelled() and written.exception() is None


async def _outcome(written: "asyncio.Future[Written]") -> Outcome:
    try:
        return await asyncio.shield(written)
    except NotWritten as problem:
        return problem
    except ClientError as error:
        return NotWritten(str(error))
