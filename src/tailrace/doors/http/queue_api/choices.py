"""Which message a numbered request of a consumer got: chosen once, durably, before the message is accepted.

    lock a message -> choose it for the request -> accept the message -> answer

A choice is a record of a compacted topic, appended with the number of the request as sequence number. So of all choices
for the same number the first is the only one that is written, and every other attempt learns of it, at any broker. A
request that is repeated thus gets the message that was chosen first, after making sure that it is accepted: were it
not, the next request could get it, too. Numbers of a consumer follow each other; any other number is refused.
"""

import json
from contextlib import suppress
from typing import Final

from tailrace.client.faults import ClientError, OutcomeUnknown, Refused
from tailrace.client.registrations import Registration
from tailrace.client.sequenced import append_sequenced, last_sequence, record_at
from tailrace.client.shares.message import Message
from tailrace.client.taking import Taker
from tailrace.client.topics import make_topic, partitions_of
from tailrace.doors.http.errors import HttpError
from tailrace.doors.upstream import Upstream
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error

CHOICES: Final = "__http_choices"
PARTITIONS: Final = 4
VERSION: Final = 1


@frozen
class Choice:
    partition: int
    offset: int

    def is_of(self, message: Message) -> bool:
        return self.partition == message.partition.partition and self.offset == message.offset


class Choices:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream

    async def take(self, consumer: Registration, request: int, partition: int | None) -> bytes | None:
        """The payload of the message that this request gets, whichever attempt it is; None if there is none yet."""
        taker = self._upstream.takers.of(consumer.group, consumer.topic)
        message = await taker.take(partition)
        try:
            if message is None:
                choice = await self._made(consumer, request)
                if choice is None:
                    return None
            else:
                choice = await self._choose(consumer, request, message)
        except BaseException:
            await _release(taker, message)
            raise
        if message is not None and choice.is_of(message):
            await taker.accept(message)
            return message.value or b""
        await _release(taker, message)
        await self._finish(taker, choice)
        return await self._payload(consumer, choice)

    async def _place(self, consumer: Registration) -> PartitionName:
        cluster = self._upstream.cluster
        count = await partitions_of(cluster, CHOICES)
        if count is None:
            await make_topic(cluster, CHOICES, PARTITIONS, cleanup_policy="compact")
            count = cluster.map.partition_counts.get(CHOICES, PARTITIONS)
        return PartitionName(CHOICES, consumer.id % count)

    async def _choose(self, consumer: Registration, request: int, message: Message) -> Choice:
        """The choice for this request: this message, unless an earlier attempt has chosen another."""
        value = {"version": VERSION, "request": request, "partition": message.partition.partition}
        return await self._append(consumer, request, value | {"offset": message.offset})

    async def _append(self, consumer: Registration, request: int, value: dict[str, int]) -> Choice:
        place = await self._place(consumer)
        cluster = self._upstream.cluster
        stamp = cluster.driver.wall_ms()
        record = NewRecord(json.dumps(value).encode(), str(consumer.id).encode(), timestamp=stamp)
        try:
            offset = await append_sequenced(cluster, place, record, consumer.sequencer, request)
        except Refused as refused:
            if refused.error is not Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
                raise
            raise await self._out_of_order(place, consumer, request) from None
        found = await record_at(cluster, place, offset) if offset >= 0 else None
        if found is None or found.value is None:
            raise HttpError(409, f"request_id {request} of consumer {consumer.id} is too old to be repeated")
        written = json.loads(found.value)
        return Choice(partition=written["partition"], offset=written["offset"])

    async def _out_of_order(self, place: PartitionName, consumer: Registration, request: int) -> HttpError:
        last = await last_sequence(self._upstream.cluster, place, consumer.sequencer)
        return HttpError(
            409,
            f"request_id {request} of consumer {consumer.id} does not follow the last one: "
            f"repeat {last}, or go on with {(last or 0) + 1}",
        )

    async def _made(self, consumer: Registration, request: int) -> Choice | None:
        """The choice that an earlier attempt made. Asked only if there is no message that could be chosen."""
        last = await last_sequence(self._upstream.cluster, await self._place(consumer), consumer.sequencer)
        if last is None or last < request:
            return None
        return await self._append(consumer, request, {"version": VERSION, "request": request})  # is never written

    async def _finish(self, taker: Taker, choice: Choice) -> None:
        """Make sure that a chosen message is accepted. Messages of a partition are taken in order: if another is next,
        it is. Busy, to be tried again, while the earlier attempt still holds it."""
        message = await taker.take(choice.partition)
        if message is None:
            return
        if choice.is_of(message):
            await taker.accept(message)
            return
        await _release(taker, message)
        if message.offset < choice.offset:
            raise OutcomeUnknown("a message before the chosen one is not finished yet; try again")

    async def _payload(self, consumer: Registration, choice: Choice) -> bytes:
        place = PartitionName(consumer.topic, choice.partition)
        found = await record_at(self._upstream.cluster, place, choice.offset)
        if found is None:
            raise HttpError(410, f"the message of this request is no longer in topic {consumer.topic}")
        return found.value or b""


async def _release(taker: Taker, message: Message | None) -> None:
    if message is not None:
        with suppress(ClientError):  # else its lock ends by itself
            await taker.release(message)
