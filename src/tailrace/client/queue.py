"""A queue: a topic whose messages are processed one by one, by any number of workers, through a share group.

    async with Queue.connect("127.0.0.1:9092", "mails") as queue:
        await queue.send(b"Dear Ann, …")
        async with queue.take() as message:
            send_mail(message.value)

Leaving the block accepts the message. An exception in the block releases it: it is delivered again, after the group's
backoff if the broker has one, until it was delivered too often; `Reject` ends that at once, and the message goes to the
group's dead letter topic, if it has one. While the block runs, the lock of the message is renewed at every third of its
time, so a handler may take as long as it needs. A worker that dies keeps its messages only until its connection or
their lock ends.

Delivery is at least once. `NotAcknowledged` at the end of a block says that the message may be delivered again. With
`QueueOptions(remembers_s=600)` workers remember for so long what they have finished, and do not process it again
(`finished`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Final, Self

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.cluster import Cluster
from tailrace.client.faults import ClientError, NotAcknowledged
from tailrace.client.finished import FinishedMessages
from tailrace.client.producer import Producer, ProducerOptions, Written
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.client.shares.message import Message, Outcome
from tailrace.model.addresses import parse_addresses
from tailrace.model.frozen import frozen
from tailrace.ports import system_ports
from tailrace.records.record import Headers

SHARING: Final = ShareOptions(acknowledges="explicit", acquire_mode="record_limit", renews_locks=True)


class Reject(Exception):
    """Raised by a handler: this message cannot be processed, now or ever."""


class QueueEmpty(ClientError):
    """No message came within the time that `take` was given."""


@frozen
class QueueOptions:
    group: str | None = None  # the share group; the topic's name if None
    prefetch: int = 0  # messages to lock beyond those that are being taken: more throughput, less even shares
    remembers_s: float = 0.0  # how long what was finished is remembered, in the topic GROUP.finished; 0: it is not
    sending: ProducerOptions = ProducerOptions()


class Queue:
    def __init__(self, cluster: Cluster, topic: str, options: QueueOptions = QueueOptions()) -> None:  # noqa: B008
        """On an event loop. The caller closes the cluster."""
        self.topic = topic
        self.group = options.group or topic
        self._cluster = cluster
        self._owns_cluster = False
        self._consumer = ShareConsumer(cluster, self.group, [topic], replace(SHARING, prefetch=options.prefetch))
        self._producer = Producer(cluster, options.sending)
        self._finished: FinishedMessages | None = None
        if options.remembers_s > 0:
            self._finished = FinishedMessages(cluster, self._producer, self.group, options.remembers_s)

    @classmethod
    def connect(cls, bootstrap: str, topic: str, options: QueueOptions = QueueOptions()) -> Self:  # noqa: B008
        """A queue with connections of its own; `bootstrap` is "host:port", or several with commas between."""
        ports = system_ports()
        driver = AsyncioDriver(ports.net, ports.clock, ports.random)
        queue = cls(Cluster(driver, parse_addresses(bootstrap)), topic, options)
        queue._owns_cluster = True
        return queue

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Send what is left to send, release what was not processed, and leave the group."""
        try:
            await self._consumer.close()
            await self._producer.close()
            if self._finished is not None:
                self._finished.close()
        finally:
            if self._owns_cluster:
                self._cluster.close()

    async def send(
        self, value: bytes | None, *, key: bytes | None = None, headers: Headers = (), partition: int | None = None
    ) -> Written:
        """Append a message, and wait until it is written. `NotWritten` if that fails."""
        return await (await self._producer.send(self.topic, value, key=key, headers=headers, partition=partition))

    @asynccontextmanager
    async def take(self, timeout_s: float | None = None) -> AsyncIterator[Message]:
        """The next message, locked for this block; QueueEmpty if none comes in time. Several blocks may run at once."""
        message = await self.receive(timeout_s)
        try:
            yield message
        except Reject:
            await self._finish(message, Outcome.REJECT)
        except BaseException:
            await self.release(message)
            raise
        else:
            await self._finish(message, Outcome.ACCEPT)

    async def _finish(self, message: Message, outcome: Outcome) -> None:
        if message.outcome is None:  # else the block has settled it by hand
            await self.settle(message, outcome)

    # The same by hand

    async def join(self, timeout_s: float | None = None) -> bool:
        """Become a worker of the queue, which may take seconds; False if that takes longer. `receive` does it, too."""
        return await self._consumer.join(timeout_s)

    async def receive(self, timeout_s: float | None = None) -> Message:
        """The next message. Its lock is renewed until it is settled."""
        while True:
            messages = await self._consumer.poll(1, timeout_s)
            if not messages:
                raise QueueEmpty(f"no message of {self.topic} came within {timeout_s:g} s")
            if not await self._is_finished(messages[0]):
                return messages[0]
            with suppress(NotAcknowledged):
                await self._consumer.settle(messages[0], Outcome.ACCEPT)

    async def _is_finished(self, message: Message) -> bool:
        """Whether a worker has processed this message before, as far as is remembered."""
        try:
            return self._finished is not None and await self._finished.contains(message)
        except BaseException:
            await self.release(message)
            raise

    async def release(self, message: Message) -> None:
        """Let a message be delivered again, unless it was settled. Does not wait for the broker: if the request fails,
        the end of the lock does the same."""
        if message.outcome is None and not message.is_lost:
            self._consumer.acknowledge(message, Outcome.RELEASE)

    async def settle(self, message: Message, outcome: Outcome) -> None:
        """Accept, release or reject a message, and wait for the broker. NotAcknowledged if its lock has ended."""
        if self._finished is not None and outcome is Outcome.ACCEPT:
            with suppress(ClientError):  # then it is not remembered, and may still be accepted
                await self._finished.add(message)
        await self._consumer.settle(message, outcome)
