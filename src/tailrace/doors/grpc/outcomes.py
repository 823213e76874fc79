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
        return [written.result() if _is_written(written) else await _outcome(written) for written in sent]
    except asyncio.CancelledError:
        let_go(sent)
        raise


def let_go(sent: Sent) -> None:
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
