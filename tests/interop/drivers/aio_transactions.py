"""aiokafka and transactions, on the loop of its driver."""

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import OffsetAndMetadata


class Running(Protocol):
    def run(self, work: Coroutine[Any, Any, Any]) -> Any: ...


class AioTransactor:
    def __init__(self, loop: Running, settings: Mapping[str, Any], name: str, timeout_ms: int) -> None:
        self._loop = loop
        self._producer: AIOKafkaProducer = loop.run(self._start(settings, name, timeout_ms))

    async def _start(self, settings: Mapping[str, Any], name: str, timeout_ms: int) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**settings, transactional_id=name, transaction_timeout_ms=timeout_ms)
        await producer.start()
        return producer

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        self._loop.run(self._write(topic, values, partition))

    async def _write(self, topic: str, values: tuple[bytes, ...], partition: int) -> None:
        sent = [await self._producer.send(topic, value, partition=partition) for value in values]
        for one in sent:
            await one

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(topic, one): OffsetAndMetadata(at, "") for one, at in offsets.items()}
        self._loop.run(self._producer.send_offsets_to_transaction(wanted, group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        self._loop.run(self._producer.stop())
