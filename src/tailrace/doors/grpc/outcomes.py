"""What became of records that were sent to a producer."""

import asyncio
from collections.abc import Sequence

from tailrace.client.faults import ClientError
from tailrace.client.producer import NotWritten, Written

Sent = Sequence["asyncio.Future[Written]"]
Outcome = Written | NotWritten


async def outcomes(sent: Sent) -> list[Outcome]:
    """Wait until each record is durable, or is not. If the caller gives up, the records are sent all the same."""
    try:
        return [await _outcome(written) for written in sent]
    except asyncio.CancelledError:
        for written in sent:
            written.add_done_callback(_look_at)
        raise


async def _outcome(written: "asyncio.Future[Written]") -> Outcome:
    try:
        return await asyncio.shield(written) if not written.done() else written.result()
    except NotWritten as problem:
        return problem
    except ClientError as error:
        return NotWritten(str(error))


def _look_at(written: "asyncio.Future[Written]") -> None:
    """Nobody waits for this record any more; else the loop would log that its failure was never looked at."""
    if not written.cancelled():
        written.exception()
