"""`tailrace queue take`: workers that take messages one by one, and print them or run a command for each.

A command that ends with 0 accepts its message. With 75 (EX_TEMPFAIL) it asks for another try; any other code is a
failed try, which is reported. Both release the message: the broker delivers it again, after the group's backoff if it
has one, until the delivery limit. A command that cannot be started at all ends the work: it would only use up the tries
of all messages.
"""

import asyncio
import os
import sys
from contextlib import suppress
from typing import Final

from tailrace.cli.failure import Failed
from tailrace.cli.output import say
from tailrace.cli.queues.shown import Format, environment, line
from tailrace.client.faults import NotAcknowledged
from tailrace.client.queue import Queue, QueueEmpty
from tailrace.client.shares.message import Message, Outcome
from tailrace.model.frozen import frozen

TRY_AGAIN: Final = 75  # EX_TEMPFAIL
CANNOT_RUN: Final = (126, 127)  # the shell's codes for a command that it cannot start


@frozen
class Work:
    command: str | None = None
    format: Format = Format.text
    most: int | None = None
    timeout_s: float | None = None
    workers: int = 1
    holds: bool = False  # print messages, and release them at the end


class Taking:
    def __init__(self, queue: Queue, work: Work) -> None:
        self.taken = self.accepted = self.failed = 0
        self._queue = queue
        self._work = work
        self._begun = 0  # messages that workers wait for or have

    async def run(self) -> None:
        """Until enough were taken, or none came for the given time, or it is cancelled."""
        workers = [asyncio.create_task(self._take_all()) for _ in range(self._work.workers)]
        try:
            await asyncio.gather(*workers)
        finally:
            for one in workers:
                one.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _take_all(self) -> None:
        while self._work.most is None or self._begun < self._work.most:
            self._begun += 1
            try:
                message = await self._queue.receive(self._work.timeout_s)
            except QueueEmpty:
                return
            self.taken += 1
            await self._handle(message)

    async def _handle(self, message: Message) -> None:
        try:
            outcome = await self._outcome(message)
        except BaseException:
            await self._queue.release(message)
            raise
        if outcome is None:
            return
        try:
            await self._queue.settle(message, outcome)
            self.accepted += outcome is Outcome.ACCEPT
        except NotAcknowledged as failure:
            self.failed += 1
            say(f"{failure}; it may be delivered again")

    async def _outcome(self, message: Message) -> Outcome | None:
        if self._work.command is None:
            sys.stdout.buffer.write(line(message, self._work.format))
            sys.stdout.buffer.flush()
            return None if self._work.holds else Outcome.ACCEPT
        code = await _run(self._work.command, message)
        where = f"offset {message.offset} of {message.partition}"
        if code in CANNOT_RUN:
            raise Failed(f"cannot run {self._work.command!r}: the shell ended with code {code}; {where} was released.")
        if code not in (0, TRY_AGAIN):
            self.failed += 1
            say(f"the command failed with code {code} for {where}, delivery {message.delivery_count}; it was released")
        return Outcome.RELEASE if code else Outcome.ACCEPT


async def _run(command: str, message: Message) -> int:
    process = await asyncio.create_subprocess_shell(
        command, stdin=asyncio.subprocess.PIPE, env={**os.environ, **environment(message)}
    )
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # it need not read its input
            await process.communicate(message.value or b"")
        return await process.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        raise
