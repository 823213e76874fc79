"""`message_queue.MessageQueue` in protobuf's messages.

Keys and values are text there, and bytes in the log. An empty key stands for none. Bytes that are no text are shown
with U+FFFD in their place, as clients of this service could not read them at all otherwise.
"""

from typing import Any

from tailrace.client.consumer import Received
from tailrace.doors.grpc.calls import Call, Service
from tailrace.doors.grpc.message_queue.service import Failure, MessageQueue, NewMessage
from tailrace.doors.grpc.schema import MESSAGE_QUEUE, Schema
from tailrace.model.ids import PartitionName


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
        messages: dict[tuple[str, int], list[NewMessage]] = {}  # by topic and partition, of which there are few
        for one in request.messages:
            name = (one.topic, one.partition)
            message = NewMessage(one.key.encode() or None, one.value.encode(), one.timestamp)
            found = messages.get(name)
            if found is None:
                messages[name] = [message]
            else:
                found.append(message)
        try:
            await self._queue.produce({PartitionName(*name): ones for name, ones in messages.items()}, call.caller)
        except Failure as failure:
            return self._types.ProduceMessagesResponse(success=False, error_message=failure.text)
        return self._types.ProduceMessagesResponse(success=True)

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
