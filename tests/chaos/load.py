"""Two producers that outlive the broker, one of librdkafka's and one of raw requests, and remember their promises.

Each writes numbered records, idempotent and acks=all, and goes on through every kill until it is told to stop. What was
acknowledged, and at which offset, is then held against what a consumer finds.
"""

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tailrace.client.connection import Connection
from tailrace.ports.net import SystemNet
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

HOST: Final = "127.0.0.1"
ANSWER_MAX_S: Final = 10.0
RETRY_S: Final = 0.005
DELIVERED_MAX_S: Final = 60.0


@dataclass(slots=True)
class Promised:
    """By partition: record number -> offset, as acknowledged."""

    offsets: dict[int, dict[int, int]] = field(default_factory=dict)
    sent: int = 0
    failures: list[str] = field(default_factory=list)

    def note(self, partition: int, number: int, offset: int) -> None:
        self.offsets.setdefault(partition, {})[number] = offset

    @property
    def acknowledged(self) -> int:
        return sum(len(one) for one in self.offsets.values())


class ConfluentLoad:
    """librdkafka, several batches under way, spread over all partitions."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.name = "confluent"
        self.promised = Promised()
        self._topic = topic
        self._partitions = partitions
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "batch.num.messages": 50,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 5,
                "message.timeout.ms": 120_000,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name="confluent-load")
        self._thread.start()

    def _run(self) -> None:
        numbers = [0] * self._partitions
        while not self._stopping.is_set():
            partition = self.promised.sent % self._partitions
            try:
                self._producer.produce(
                    self._topic,
                    key=self.name.encode(),
                    value=b"%d" % numbers[partition],
                    partition=partition,
                    on_delivery=self._delivered,
                )
            except BufferError:  # its queue is full while the broker is away
                self._producer.poll(0.01)
                continue
            numbers[partition] += 1
            self.promised.sent += 1
            self._producer.poll(0.002 if self.promised.sent % 5 == 0 else 0)  # the broker is to be busy, not the test

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.promised.failures.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        self.promised.note(partition, int(value or b"-1"), offset)

    def stop(self) -> None:
        """Wait until all is acknowledged."""
        self._stopping.set()
        self._thread.join()
        left = self._producer.flush(DELIVERED_MAX_S)
        if left:
            self.promised.failures.append(f"{left} records were not acknowledged within {DELIVERED_MAX_S} s")


class RawLoad:
    """One partition, up to three batches of our own wire client under way."""

    def __init__(self, port: int, topic: str, partition: int) -> None:
        self.name = "raw"
        self.promised = Promised()
        self._port = port
        self._topic = topic
        self._partition = partition
        self._stopping = threading.Event()
        self._client: Connection | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="raw-load")
        self._thread.start()

    async def _run(self) -> None:
        answer = None
        while answer is None or answer.error_code != 0:
            (answer,) = await self._call([InitProducerIdRequest(transaction_timeout_ms=0)], 1)
        window: list[tuple[int, ProduceRequest]] = []
        while window or not self._stopping.is_set():
            while len(window) < (3 if self.promised.offsets else 1) and not self._stopping.is_set():
                window.append((self.promised.sent, self._request(answer.producer_id, self.promised.sent)))
                self.promised.sent += 1
            responses = await self._call([request for _, request in window], 9)
            window = [one for one, response in zip(window, responses, strict=True) if not self._took(one[0], response)]
            if window:
                await asyncio.sleep(RETRY_S)

    def _request(self, producer_id: int, number: int) -> ProduceRequest:
        record = NewRecord(key=self.name.encode(), value=b"%d" % number)
        batch = build_batch([record], producer_id=producer_id, producer_epoch=0, base_sequence=number)
        data = PartitionToProduce(partition=self._partition, records=bytes(batch))
        return ProduceRequest(acks=-1, timeout_ms=5000, topics=(TopicToProduce(name=self._topic, partitions=(data,)),))

    def _took(self, number: int, response: Any) -> bool:
        if response is None:
            return False
        answer = response.topics[0].partitions[0]
        if answer.error_code == 0:
            self.promised.note(self._partition, number, answer.base_offset)
        elif not Error(answer.error_code).retriable and answer.error_code != Error.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self.promised.failures.append(Error(answer.error_code).name)
        return bool(answer.error_code == 0)

    async def _call(self, requests: list[Any], version: int) -> list[Any]:
        try:
            if self._client is None or self._client.transport is None:
                self._client = await Connection.connect(SystemNet(), HOST, self._port)
            waiting = [self._client.send(request, version) for request in requests]
            async with asyncio.timeout(ANSWER_MAX_S):
                answers = await asyncio.gather(*waiting, return_exceptions=True)
        except (OSError, TimeoutError):
            self._client = None
            await asyncio.sleep(RETRY_S)
            return [None] * len(requests)
        return [None if isinstance(one, OSError) else one for one in answers]

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(DELIVERED_MAX_S)
        if self._thread.is_alive():
            self.promised.failures.append(f"not done within {DELIVERED_MAX_S} s")


def consume(bootstrap: str, topic: str, partition: int) -> list[tuple[bytes, int, int]]:
    """Whose, which number, at which offset: all records of a partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False})
    try:
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
        consumer.assign([TopicPartition(topic, partition, 0)])
        found: list[tuple[bytes, int, int]] = []
        while consumer.position([TopicPartition(topic, partition)])[0].offset < end:
            found += list(_rows(consumer.consume(1000, timeout=0.1)))
        return found
    finally:
        consumer.close()


def _rows(messages: Iterable[Message]) -> Iterable[tuple[bytes, int, int]]:
    for message in messages:
        assert message.error() is None
        key, value, offset = message.key(), message.value(), message.offset()
        assert key is not None
        assert value is not None
        assert offset is not None
        yield bytes(key), int(value), offset


def check(promised: Promised, name: str, partition: int, found: list[tuple[bytes, int, int]]) -> None:
    """All that was acknowledged is there, in order, once, at its offset; nothing is there that was not sent."""
    mine = [(number, offset) for key, number, offset in found if key == name.encode()]
    numbers = [number for number, _ in mine]
    assert numbers == list(range(len(numbers))), f"{name}-{partition}: records are missing, doubled or out of order"
    there = dict(mine)
    wrong = {
        number: (offset, there.get(number))
        for number, offset in promised.offsets.get(partition, {}).items()
        if there.get(number) != offset
    }
    assert not wrong, f"{name}-{partition}: acknowledged at, found at: {dict(list(wrong.items())[:5])}"
