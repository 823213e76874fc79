"""`message_queue.MessageQueue` in protobuf's messages.

Keys and values are text there, and bytes in the log. An empty key stands for none. Bytes that are no text are shown
with U+FFFD in their place, as clients of this service could not read them at all otherwise.
"""

from collections.abc import Sequence
from typing import Any, Final

from tailrace.client.consumer import Received
from tailrace.doors.grpc.calls import Call, Service
from tailrace.doors.grpc.message_queue.service import Failure, MessageQueue
from tailrace.doors.grpc.schema import MESSAGE_QUEUE, Schema
from tailrace.model.ids import PartitionName
from tailrace.records.record import NewRecord

SECONDS_MAX: Final = (2**63 - 1) // 1000


def message_queue(queue: MessageQueue, schema: Schema) -> Service:
    translated = _Translated(queue, schema.queue)
    return Service(
        name=MESSAGE_QUEUE,
        unary={
            "ProduceMessages": translated.produce,
            "ConsumeMessages": translated.consume,
            "GetMetadata": translated.metadata,
            "GetBrokerAddress": translated.broker_address,
            "Shutdown": translated.shut_down,
        },
        streaming={},
    )


class _Translated:
    def __init__(self, queue: MessageQueue, types: Any) -> None:
        self._queue = queue
        self._types = types

    async def produce(self, request: Any, call: Call) -> Any:
        try:
            await self._queue.produce(self._records(request.messages), call.caller)
        except Failure as failure:
            return self._types.ProduceMessagesResponse(success=False, error_message=failure.text)
        return self._types.ProduceMessagesResponse(success=True)

    def _records(self, messages: Sequence[Any]) -> dict[PartitionName, list[NewRecord]]:
        now_ms = self._queue.now_ms
        found: dict[tuple[str, int], list[NewRecord]] = {}  # by topic and partition, of which there are few
        for one in messages:
            seconds = one.timestamp
            if not 0 <= seconds <= SECONDS_MAX:
                raise Failure(f"Timestamp {seconds} is not a time in seconds since 1970.")
            name = (one.topic, one.partition)
            stamp = seconds * 1000 or now_ms
            record = tuple.__new__(NewRecord, (one.value.encode(), one.key.encode() or None, (), stamp))  # no call
            of_partition = found.get(name)
            if of_partition is None:
                found[name] = [record]
            else:
                of_partition.append(record)
        return {PartitionName(*name): ones for name, ones in found.items()}

    async def consume(self, request: Any, call: Call) -> Any:
        partition = PartitionName(request.topic, request.partition)
        try:
            found = await self._queue.consume(request.group_id, partition, request.start_offset, request.max_messages)
        except Failure as failure:
            return self._types.ConsumeMessagesResponse(success=False, error_message=failure.text)
        return self._types.ConsumeMessagesResponse(messages=map(self._message, found), success=True)

    def _message(self, one: Received) -> Any:
        value = one.value or b""
        return self._types.Message(
            key=_text(one.key or b""),
            value=_text(value),
            topic=one.partition.topic,
            partition=one.partition.partition,
            offset=one.offset,
            timestamp=one.timestamp_ms // 1000,
            size=len(value),
        )

    async def metadata(self, request: Any, call: Call) -> Any:
        try:
            found = await self._queue.metadata(request.topic)
        except Failure as failure:
            return self._types.MetadataResponse(success=False, error_message=failure.text)
        partition = self._types.PartitionMetadata
        partitions = [partition(partition_id=one.partition, broker_address=str(one.address)) for one in found]
        return self._types.MetadataResponse(partitions=partitions, success=True)

    async def broker_address(self, request: Any, call: Call) -> Any:
        try:
            address = await self._queue.broker_address(request.broker_id)
        except Failure as failure:
            return self._types.BrokerAddressResponse(success=False, error_message=failure.text)
        return self._types.BrokerAddressResponse(broker_address=str(address), success=True)

    async def shut_down(self, request: Any, call: Call) -> Any:
        try:
            await self._queue.shut_down(request.broker_id, call.caller)
        except Failure as failure:
            return self._types.ShutdownResponse(
                success=False, error_message=failure.text, broker_address=failure.address
            )
        return self._types.ShutdownResponse(success=True)


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
