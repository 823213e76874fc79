"""PUSH, POP and PEEK, as a client of the log does them.

PUSH appends through an idempotent producer with acks=all: its future is done when the message is durable. There is a
task for each topic that is pushed to: what all connections push in one turn of the loop goes to one shard, as one
batch, and what comes next to the next shard that has a leader.

POP takes one message through the share group of its topic, which locks one message of a shard at a time, and accepts
it. Only when the acceptance is durable does the message leave: so it is never delivered twice, and messages of a shard
leave in their order. If the outcome of the acceptance is unknown, the client gets EAGAIN instead of the message. PEEK
shows the message that the next POP through this door takes, unless another client is faster.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tailrace.client.batching import RECORD_OVERHEAD_BYTES
from tailrace.doors.dmqp.statuses import NotAwaited, TooLargeToSend
from tailrace.doors.dmqp.topics import Topics, group_of
from tailrace.model.ids import PartitionName
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES, KiB
from tailrace.records.record import NewRecord

if TYPE_CHECKING:
    from tailrace.client.producer import Written
    from tailrace.doors.upstream import Upstream

logger: Final = logging.getLogger(__name__)

TOGETHER_MAX_BYTES: Final = 512 * KiB
PRINCIPAL: Final = "dmqp"  # the protocol has no login: all its clients are one principal


class Stored(NamedTuple):
    """A message as it is in the log."""

    timestamp_ms: int
    payload: bytes


class Push(Protocol):
    """A message that a client pushes."""

    @property
    def payload(self) -> bytes: ...

    @property
    def timestamp_ms(self) -> int: ...

    def is_awaited(self) -> bool:
        """Whether the client has no response yet."""

    def begun(self, written: "asyncio.Future[Written]") -> None: ...

    def failed(self, error: Exception) -> None: ...


class Queues:
    def __init__(self, upstream: "Upstream", topics: Topics) -> None:
        self._upstream = upstream
        self._pushes: dict[int, list[Push]] = {}  # by topic id, what its task has not looked at yet
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._topics = topics
        self._last_shard: dict[str, int] = {}  # by topic, where the last messages were pushed to
        self._shown: dict[str, int] = {}  # by topic, the shard of the message that the last PEEK showed

    def push(self, topic_id: int, push: Push) -> None:
        """Append a message: `push.begun` is called with a future that is done when it is durable, or `push.failed`."""
        waiting = self._pushes.get(topic_id)
        if waiting is not None:
            waiting.append(push)
            return
        self._pushes[topic_id] = [push]
        task = asyncio.get_running_loop().create_task(self._push_all(topic_id))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def _push_all(self, topic_id: int) -> None:
        """Hand what has gathered to the producer, until there is nothing more."""
        try:
            while pushes := self._pushes[topic_id]:
                self._pushes[topic_id] = []
                await self._push_gathered(topic_id, pushes)
        finally:
            del self._pushes[topic_id]

    async def _push_gathered(self, topic_id: int, pushes: list[Push]) -> None:
        done = 0
        try:
            name = await self._topics.open(topic_id)
            shard = self._next_shard(name)
            with self._upstream.producers.of(PRINCIPAL) as producer:
                while done < len(pushes):
                    some = _some(pushes, done)
                    if not some[0].is_awaited():  # its client got EAGAIN; those behind came later
                        some[0].failed(NotAwaited())
                        done += 1
                        continue
                    records = [(shard, NewRecord(push.payload, None, (), push.timestamp_ms)) for push in some]
                    for push, written in zip(some, await producer.send_all(name, records), strict=True):
                        push.begun(written)
                    done += len(some)
        except Exception as error:
            for push in pushes[done:]:
                push.failed(error)

    def _next_shard(self, name: str) -> int:
        routes = self._upstream.cluster.map
        count = routes.partition_counts.get(name, 1)
        first = self._last_shard.get(name, -1) + 1
        in_turn = [(first + step) % count for step in range(count)]
        led = (one for one in in_turn if routes.leader(PartitionName(name, one)) is not None)
        shard = self._last_shard[name] = next(led, in_turn[0])
        return shard

    async def pop(self, topic_id: int, is_awaited: Callable[[], bool]) -> Stored | None:
        """Take the next message for good; None if all shards are empty."""
        name = await self._topics.find(topic_id)
        if name is None:
            return None
        taker = self._upstream.takers.of(group_of(topic_id), name)
        shown = self._shown.pop(name, None)
        message = None if shown is None else await taker.take(partition=shown)
        if message is None:
            message = await taker.take()
        if message is None:
            return None
        if not is_awaited():
            await taker.release(message)
            raise NotAwaited
        payload = message.value or b""
        if len(payload) > DMQP_PAYLOAD_MAX_BYTES:
            logger.warning("%s is too large for DMQP: rejecting it for its group", message)
            await taker.reject(message)
            raise TooLargeToSend(f"{message} has {len(payload)} bytes")
        await taker.accept(message)
        return Stored(max(message.timestamp_ms, 0), payload)

    async def peek(self, topic_id: int) -> Stored | None:
        """The message that is next; None if all shards are empty."""
        name = await self._topics.find(topic_id)
        if name is None:
            return None
        found = await self._upstream.takers.of(group_of(topic_id), name).peek()
        if found is None:
            return None
        self._shown[name] = found.partition.partition
        payload = found.value or b""
        if len(payload) > DMQP_PAYLOAD_MAX_BYTES:
            raise TooLargeToSend(f"offset {found.offset} of {name} has {len(payload)} bytes")
        return Stored(max(found.timestamp_ms, 0), payload)


def _some(pushes: list[Push], at: int) -> list[Push]:
    """The next pushes that go to the producer together: as many as its buffer may have room for at once."""
    size = 0
    for end in range(at, len(pushes)):
        size += len(pushes[end].payload) + RECORD_OVERHEAD_BYTES
        if size > TOGETHER_MAX_BYTES and end > at:
            return pushes[at:end]
    return pushes[at:]
