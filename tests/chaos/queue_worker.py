"""A worker of a queue: `BOOTSTRAP QUEUE REMEMBERS_S`. It handles one message at a time, and has some locked ahead.

A message's value says what becomes of it: `plain-7` and `slow-7` are accepted, `fails-7` raises an exception,
`crashes-7` ends the process, `rejected-7` is rejected. It prints the values of messages that it has handled to the end.
"""

import asyncio
import os
import sys
from contextlib import suppress

from tailrace.client import Queue, QueueOptions, Reject
from tailrace.client.faults import NotAcknowledged
from tailrace.client.shares.message import Message

PREFETCH = 3
SLOW_S = 0.4
LONG_S = 4.0  # longer than a lock
LONG_EVERY = 1000  # one slow message of fifty


class HandlerFailed(Exception):
    pass


async def handle(message: Message) -> None:
    kind, _, number = (message.value or b"").decode().partition("-")
    match kind:
        case "slow":
            await asyncio.sleep(LONG_S if int(number) % LONG_EVERY == 0 else SLOW_S)
        case "fails":
            raise HandlerFailed
        case "crashes":
            os._exit(1)
        case "rejected":
            raise Reject
    sys.stdout.write(f"{kind}-{number}\n")
    sys.stdout.flush()


async def work(bootstrap: str, topic: str, remembers_s: float) -> None:
    async with Queue.connect(bootstrap, topic, QueueOptions(prefetch=PREFETCH, remembers_s=remembers_s)) as queue:
        while True:
            with suppress(HandlerFailed, NotAcknowledged):
                async with queue.take() as message:
                    await handle(message)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], float(sys.argv[3])))
