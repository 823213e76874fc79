"""`tailrace.v1.Queue`: work on the messages of a queue, as a stream that is a member of a share group.

A message is locked for the stream. What the client decides is settled with the broker at once, many at a time, and
answered when the broker has stored it. A message whose lock has ended is forgotten: another worker may have it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tailrace.client.faults import ClientError
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.client.shares.message import Message, Outcome
from tailrace.doors.grpc.calls import Service, Stream, both_sides
from tailrace.doors.grpc.schema import Schema
from tailrace.doors.grpc.statuses import BadField, shortened
from tailrace.doors.grpc.v1.records import checked_count, checked_name, checked_names, encoded_record, size_of
from tailrace.doors.upstream import Upstream
from tailrace.model.limits import (
    GRPC_FETCH_MAX_BYTES,
    GRPC_RESPONSE_RECORDS_MAX,
    GRPC_RESPONSE_RECORDS_MAX_BYTES,
    GRPC_UNSETTLED_MAX,
)

POLL_S: Final = 0.5  # also how often locks that have ended are looked for
NO_LOCK: Final = "there is no such delivery on this stream, or its lock has ended"


class Working:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1

    def service(self) -> Service:
        return Service(name="tailrace.v1.Queue", unary={}, streaming={"Work": self.work})

    async def work(self, stream: Stream) -> None:
        first = await stream.read()
        if first is None or first.WhichOneof("action") != "start":
            raise BadField("start", "the first request of the stream must be a Start")
        start = first.start
        group = checked_name(start.group, "start.group")
        topics = checked_names(start.topics, "start.topics")
        most = checked_count(start.max_unsettled, "start.max_unsettled", GRPC_UNSETTLED_MAX, 1)
        options = ShareOptions(
            acknowledges="explicit",
            acquire_mode="record_limit",
            renews_locks=start.renews_locks,
            response_max_bytes=GRPC_FETCH_MAX_BYTES,
        )
        async with ShareConsumer(self._upstream.cluster, group, topics, options) as consumer:
            await _Worker(self._types, stream, consumer, most, self._upstream.cluster.driver.now).run()


class _Worker:
    """One working stream."""

    def __init__(self, types: Any, stream: Stream, consumer: ShareConsumer, most: int, now: Any) -> None:
        self._types = types
        self._stream = stream
        self._consumer = consumer
        self._most = most
        self._now = now
        self._unsettled: dict[int, Message] = {}  # by the id of the delivery
        self._last_id = 0
        self._settling: dict[asyncio.Task[None], None] = {}
        self._room = asyncio.Event()
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        try:
            await both_sides(self._take_requests(), self._send())
        finally:
            for task in list(self._settling):
                task.cancel()

    async def _take_requests(self) -> None:
        while (request := await self._stream.read()) is not None:
            match request.WhichOneof("action"):
                case "settle":
                    outcome = request.settle.outcome
                    if outcome not in (Outcome.ACCEPT, Outcome.RELEASE, Outcome.REJECT):
                        raise BadField("settle.outcome", f"{outcome} is not an outcome")
                    self._spawn(request.settle.ids, Outcome(outcome))
                case "renew":
                    self._spawn(request.renew.ids, Outcome.RENEW)
                case "start":
                    raise BadField("start", "the stream was started before")
                case _:
                    raise BadField("action", "there is none, or none that this server knows")
        for task in list(self._settling):
            await task

    def _spawn(self, ids: Sequence[int], outcome: Outcome) -> None:
        if len(ids) > GRPC_UNSETTLED_MAX:
            raise BadField("ids", f"there are {len(ids)}, more than {GRPC_UNSETTLED_MAX}")
        if outcome is Outcome.RENEW:
            found = {number: self._unsettled.get(number) for number in ids}
        else:
            found = {number: self._unsettled.pop(number, None) for number in ids}
        task = asyncio.get_running_loop().create_task(self._settle(found, outcome))
        self._settling[task] = None
        task.add_done_callback(self._settling.pop)

    async def _settle(self, messages: dict[int, Message | None], outcome: Outcome) -> None:
        """Each is answered when the broker has answered it."""
        self._room.set()
        works = [self._settled(number, message, outcome) for number, message in messages.items()]
        await asyncio.gather(*works)

    async def _settled(self, number: int, message: Message | None, outcome: Outcome) -> None:
        settled = self._types.WorkResponse.Settled(id=number)
        try:
            if message is None:
                raise ClientError(NO_LOCK)
            if outcome is Outcome.RENEW:
                await self._consumer.renew([message])
            else:
                await self._consumer.settle(message, outcome)
        except ClientError as error:
            settled.refused = shortened(str(error))
        await self._write(self._types.WorkResponse(settled=settled))

    async def _send(self) -> None:
        while True:
            self._forget_lost()
            room = self._most - len(self._unsettled)
            if room <= 0:
                self._room.clear()
                try:
                    async with asyncio.timeout(POLL_S):
                        await self._room.wait()
                except TimeoutError:
                    continue
            else:
                messages = await self._consumer.poll(min(room, GRPC_RESPONSE_RECORDS_MAX), POLL_S)
                await self._deliver(messages)

    async def _deliver(self, messages: Sequence[Message]) -> None:
        portion: list[Any] = []
        size = 0
        for one in messages:
            self._last_id += 1
            self._unsettled[self._last_id] = one
            portion.append(
                self._types.WorkResponse.Delivery(
                    id=self._last_id,
                    record=encoded_record(self._types, one),
                    delivery_count=one.delivery_count,
                    locked_ms=max(0, int(1000 * (one.locked_until - self._now()))),
                )
            )
            size += size_of(one)
            if size >= GRPC_RESPONSE_RECORDS_MAX_BYTES:
                await self._write_deliveries(portion)
                portion, size = [], 0
        if portion:
            await self._write_deliveries(portion)

    async def _write_deliveries(self, deliveries: Sequence[Any]) -> None:
        found = self._types.WorkResponse.Deliveries(deliveries=deliveries)
        await self._write(self._types.WorkResponse(deliveries=found))

    def _forget_lost(self) -> None:
        now = self._now()
        lost = [number for number, one in self._unsettled.items() if one.is_lost or one.locked_until <= now]
        for number in lost:
            del self._unsettled[number]

    async def _write(self, response: Any) -> None:
        async with self._writing:
            await self._stream.write(response)
