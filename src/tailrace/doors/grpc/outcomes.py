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
    found: dict[int, Outcome] = {}
    for run, outcome in zip(runs, await outcomes_of([run.written for run in runs]), strict=True):
        if isinstance(outcome, NotWritten) or outcome.offset < 0:
            found.update(dict.fromkeys(run.places, outcome))
        else:
            partition, first = outcome
            found.update({place: Written(partition, offset) for offset, place in enumerate(run.places, first)})
    return [found[place] for place in range(len(found))]


async def outcomes_of(sent: Waited) -> list[Outcome]:
    """Wait until each is durable, or is not. If the caller gives up, the records are sent all the same."""
    try:
        return [written.result() if _is_written(written) else await _outcome(written) for written in sent]
    except asyncio.CancelledError:
        let_go(sent)
        raise


def let_go(sent: Waited) -> None:
    """Nobody waits for these records any more; else the loop would log that nobody looked at their failures."""
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
