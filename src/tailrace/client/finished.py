"""What the workers of a queue have finished lately: a message whose acceptance was lost is not processed again.

A worker appends the position of each message that it has processed to the topic `GROUP.finished`, and only then
accepts the message. Before a message is processed, the worker reads that topic up to its end. So a message is
processed again only if its worker ended between the work and the append, or if the position was forgotten: that is
bounded by a time and by `FINISHED_MAX`. The topic has one partition and is deleted after twice the time.
"""

import asyncio
from typing import Final

from tailrace.client.admin import create_topics
from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Consumer, ConsumerOptions
from tailrace.client.offsets import LATEST, NO_OFFSET, offsets_at
from tailrace.client.producer import Producer
from tailrace.client.shares.message import Message
from tailrace.model.ids import PartitionName, show_id
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig

FINISHED_MAX: Final = 100_000  # positions that a worker keeps; the oldest are forgotten
READ_MAX: Final = 1_000
WAIT_S: Final = 1.0


class FinishedMessages:
    def __init__(self, cluster: Cluster, producer: Producer, group: str, window_s: float) -> None:
        self.topic = f"{group}.finished"
        self._cluster = cluster
        self._producer = producer
        self._window_ms = int(window_s * 1000)
        self._place = PartitionName(self.topic, 0)
        self._consumer = Consumer(cluster, ConsumerOptions(reads_committed=False, reset="earliest"))
        self._finished_ms: dict[bytes, int] = {}  # by position, when it was finished; the oldest first
        self._reading = asyncio.Lock()

    def close(self) -> None:
        self._consumer.close()

    async def add(self, message: Message) -> None:
        """Returns when it is written."""
        await (await self._producer.send(self.topic, b"", key=_position(message), partition=0))

    async def contains(self, message: Message) -> bool:
        """Whether a worker had finished this message by now."""
        async with self._reading:
            if self._place not in self._consumer.positions:
                await self._open()
            end = (await offsets_at(self._cluster, {self._place: LATEST}))[self._place]
            while self._consumer.positions[self._place] < end:
                for record in await self._consumer.poll(READ_MAX, WAIT_S):
                    self._finished_ms[record.key or b""] = record.timestamp_ms
            self._forget()
        return _position(message) in self._finished_ms

    async def _open(self) -> None:
        """Create the topic if it is missing, and begin to read where the window begins."""
        settings = {"retention.ms": 2 * self._window_ms, "segment.ms": self._window_ms}
        new = NewTopic(
            name=self.topic,
            num_partitions=1,
            replication_factor=-1,
            configs=tuple(NewTopicConfig(name=name, value=str(value)) for name, value in settings.items()),
        )
        refused = (await create_topics(self._cluster, [new]))[self.topic]
        if refused is not None and refused.error is not Error.TOPIC_ALREADY_EXISTS:
            raise refused
        since_ms = self._cluster.driver.wall_ms() - self._window_ms
        end = (await offsets_at(self._cluster, {self._place: LATEST}))[self._place]
        first = (await offsets_at(self._cluster, {self._place: since_ms}))[self._place]
        self._consumer.assign({self._place: end if first == NO_OFFSET else first})

    def _forget(self) -> None:
        oldest_ms = self._cluster.driver.wall_ms() - self._window_ms
        while self._finished_ms:
            position, finished_ms = next(iter(self._finished_ms.items()))
            if finished_ms >= oldest_ms and len(self._finished_ms) <= FINISHED_MAX:
                break
            del self._finished_ms[position]


def _position(message: Message) -> bytes:
    """Of a message; with the topic's id, as a new topic of the same name has other messages."""
    return f"{show_id(message.source.topic_id)}:{message.source.partition}:{message.offset}".encode()
