"""`tailrace.v1.Consumer`: read a partition once, or partitions as a stream.

A stream has two sides. One reads requests: credit, and commits, which it finishes one after the other. The other polls
the consumer and writes records: no more than the credit, and nothing while the client does not read, because a write
then waits. A poll for no records still keeps the member in its group, and takes rebalances.
"""

import asyncio
from math import inf
from typing import Any, Final

from tailrace.client.consumer import Consumer, ConsumerOptions, OffsetReset, Received
from tailrace.client.faults import ClientError
from tailrace.client.group_consumer import GroupConsumer, GroupOptions
from tailrace.client.partition_reading import read_partition
from tailrace.doors.grpc.calls import Call, Service, Stream, both_sides
from tailrace.doors.grpc.schema import Schema
from tailrace.doors.grpc.statuses import BadField, shortened
from tailrace.doors.grpc.v1.records import (
    checked_count,
    checked_name,
    checked_names,
    encoded_record,
    offsets_of,
    portions,
)
from tailrace.doors.upstream import Upstream
from tailrace.model.ids import PartitionName
from tailrace.model.limits import (
    GRPC_FETCH_MAX_BYTES,
    GRPC_FETCH_WAIT_MAX_MS,
    GRPC_RESPONSE_RECORDS_MAX,
    GRPC_RESPONSE_RECORDS_MAX_BYTES,
)

RECORDS_DEFAULT: Final = 500  # in one response
POLL_S: Final = 1.0
WAITING_SHARE: Final = 0.8  # of the time until a call's deadline: the rest is for the answer to arrive
RESETS: Final[tuple[OffsetReset, ...]] = ("earliest", "latest", "error")  # by the numbers of the enum


class Consuming:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1

    def service(self) -> Service:
        return Service(name="tailrace.v1.Consumer", unary={"Fetch": self.fetch}, streaming={"Consume": self.consume})

    async def fetch(self, request: Any, call: Call) -> Any:
        partition = PartitionName(checked_name(request.topic, "topic"), request.partition)
        if request.partition < 0:
            raise BadField("partition", f"{request.partition} is less than 0")
        if request.offset < 0:
            raise BadField("offset", f"{request.offset} is less than 0")
        count = checked_count(request.max_records, "max_records", GRPC_RESPONSE_RECORDS_MAX, RECORDS_DEFAULT)
        wait_ms = checked_count(request.max_wait_ms, "max_wait_ms", GRPC_FETCH_WAIT_MAX_MS, 0)
        wait_s = WAITING_SHARE * call.within_s(wait_ms / 1000 / WAITING_SHARE)
        cluster = self._upstream.cluster
        waiting = cluster.with_own_connections(cluster.limits) if wait_s else cluster
        try:
            found = await read_partition(
                waiting,
                partition,
                request.offset,
                max_records=count,
                max_bytes=GRPC_RESPONSE_RECORDS_MAX_BYTES,
                wait_s=wait_s,
                committed=request.isolation == self._types.Isolation.READ_COMMITTED,
                within_s=cluster.limits.retry_s + wait_s,
            )
        finally:
            if waiting is not cluster:
                waiting.close()
        records = [encoded_record(self._types, one) for one in found.records]
        return self._types.FetchResponse(records=records, next_offset=found.next_offset)

    async def consume(self, stream: Stream) -> None:
        first = await stream.read()
        if first is None or first.WhichOneof("action") != "start":
            raise BadField("start", "the first request of the stream must be a Start")
        start = first.start
        options = ConsumerOptions(
            reads_committed=start.isolation == self._types.Isolation.READ_COMMITTED,
            reset=RESETS[start.reset] if 0 <= start.reset < len(RESETS) else "earliest",
            partition_max_bytes=GRPC_RESPONSE_RECORDS_MAX_BYTES,
            response_max_bytes=GRPC_FETCH_MAX_BYTES,
        )
        if start.group:
            topics = checked_names(start.topics, "start.topics")
            if start.positions:
                raise BadField("start.positions", "a group begins where it has committed: leave out one of the two")
            grouped = GroupOptions(
                protocol="consumer",
                instance_id=start.instance_id or None,
                commits_automatically=False,
                reading=options,
            )
            async with GroupConsumer(self._upstream.cluster, start.group, topics, grouped) as member:
                await _Reading(self._types, stream, start, member).run()
        else:
            async with Consumer(self._upstream.cluster, options) as consumer:
                positions = offsets_of(start.positions, "start.positions")
                if not positions:
                    raise BadField("start.positions", "there are none, and no group")
                consumer.assign(positions)
                await _Reading(self._types, stream, start, consumer).run()


class _Reading:
    """One consuming stream."""

    def __init__(self, types: Any, stream: Stream, start: Any, consumer: GroupConsumer | Consumer) -> None:
        self._types = types
        self._stream = stream
        self._consumer = consumer
        self._at_once = checked_count(
            start.max_records, "start.max_records", GRPC_RESPONSE_RECORDS_MAX, RECORDS_DEFAULT
        )
        self._credit: float = start.credit if start.HasField("credit") else inf
        if self._credit < 0:
            raise BadField("start.credit", f"{start.credit} is less than 0")
        self._assigned: tuple[PartitionName, ...] = ()
        self._sent: dict[PartitionName, int] = {}  # by partition, the offset after the last record that was written
        self._writing = asyncio.Lock()

    async def run(self) -> None:
        await both_sides(self._take_requests(), self._send())

    async def _take_requests(self) -> None:
        while (request := await self._stream.read()) is not None:
            match request.WhichOneof("action"):
                case "credit":
                    if request.credit.records < 0:
                        raise BadField("credit.records", f"{request.credit.records} is less than 0")
                    self._credit += request.credit.records
                    self._consumer.interrupt()
                case "commit":
                    await self._commit(request.commit)
                case "start":
                    raise BadField("start", "the stream was started before")
                case _:
                    raise BadField("action", "there is none, or none that this server knows")

    async def _commit(self, wanted: Any) -> None:
        offsets = offsets_of(wanted.offsets, "commit.offsets") or dict(self._sent)
        committed = self._types.ConsumeResponse.Committed(id=wanted.id)
        try:
            if not isinstance(self._consumer, GroupConsumer):
                raise ClientError("the stream reads without a group")
            await self._consumer.commit_offsets(offsets)
        except ClientError as error:
            committed.refused = shortened(str(error))
        await self._write(self._types.ConsumeResponse(committed=committed))

    async def _send(self) -> None:
        while True:
            records = await self._consumer.poll(int(min(self._credit, self._at_once)), POLL_S)
            await self._tell_assignment()
            for portion in portions(records):
                self._credit -= len(portion)
                await self._write_records(portion)

    async def _write_records(self, records: list[Received]) -> None:
        encoded = [encoded_record(self._types, one) for one in records]
        await self._write(self._types.ConsumeResponse(records=self._types.ConsumeResponse.Records(records=encoded)))
        self._sent |= {one.partition: one.offset + 1 for one in records}

    async def _tell_assignment(self) -> None:
        consumer = self._consumer
        now = consumer.assignment if isinstance(consumer, GroupConsumer) else tuple(consumer.positions)
        if now != self._assigned:
            self._assigned = now
            self._sent = {one: offset for one, offset in self._sent.items() if one in now}
            partitions = [self._types.Partition(topic=one.topic, partition=one.partition) for one in now]
            assigned = self._types.ConsumeResponse.Assigned(partitions=partitions)
            await self._write(self._types.ConsumeResponse(assigned=assigned))

    async def _write(self, response: Any) -> None:
        async with self._writing:
            await self._stream.write(response)
