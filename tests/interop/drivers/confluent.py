"""confluent-kafka (librdkafka): producer, consumer by assignment, admin.

A consumer needs a `group.id` to exist; with `assign` and explicit offsets it never commits and waits for no
coordinator, though librdkafka looks for one in the background.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import confluent_kafka
from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka import Message as Delivered
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from tests.interop.client import CURRENT, DEADLINE_S, Code, Refused, TlsOptions
from tests.interop.drivers.confluent_groups import ConfluentGroups
from tests.interop.drivers.confluent_refusals import only, surfaced
from tests.interop.drivers.confluent_settings import changed
from tests.interop.drivers.confluent_shares import ConfluentShares
from tests.interop.drivers.confluent_transactions import ConfluentTransactions
from tests.interop.messages import AS_USUAL, END, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import ONE_PARTITION, ClusterShape, Setting, TopicPlan, TopicShape

T = TypeVar("T")

NOT_KNOWN_YET = (
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
)


class ConfluentReader:
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def take(self, count: int) -> list[Received]:
        taken: list[Received] = []
        until = time.monotonic() + DEADLINE_S
        while len(taken) < count:
            for message in self._consumer.consume(count - len(taken), timeout=max(0.0, until - time.monotonic())):
                error = message.error()
                if error is not None:
                    raise _lost(error)
                taken.append(_received(message))
            if time.monotonic() > until:
                raise TimeoutError(f"{len(taken)} of {count} records in {DEADLINE_S} s")
        return taken


def _lost(error: KafkaError) -> Refused:
    # librdkafka has a code of its own for an offset out of range that it may not reset
    out_of_range = error.code() == KafkaError._AUTO_OFFSET_RESET and "Offset out of range" in error.str()
    return Refused(Code.OFFSET_OUT_OF_RANGE if out_of_range else error.code(), error.str())


def _received(message: Delivered) -> Received:
    kind, timestamp_ms = message.timestamp()
    offset = message.offset()
    assert offset is not None
    headers: Any = message.headers() or ()
    return Received(
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=tuple((name, value) for name, value in headers),
        timestamp_ms=timestamp_ms,
        append_time=kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME,
    )


class Confluent(ConfluentGroups, ConfluentShares, ConfluentTransactions):
    name = "confluent-kafka"
    also = CURRENT | {"TLS"}

    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        super().__init__(bootstrap, tls)
        self._common: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": "interop-confluent",
            "socket.timeout.ms": int(DEADLINE_S * 1000),
            "retry.backoff.ms": 10,
            "topic.metadata.refresh.fast.interval.ms": 10,
            **({} if tls is None else tls.of_librdkafka),
        }
        self._admin = AdminClient(self._common)

    @classmethod
    def version(cls) -> str:
        return f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        size = {} if sending.max_bytes is None else {"message.max.bytes": sending.max_bytes}
        settings = {
            "compression.type": sending.compression,
            "acks": str(sending.acks),
            "enable.idempotence": sending.idempotent,
            "linger.ms": 5,
            **size,
        }
        producer = Producer({**self._common, **settings})
        offsets: list[int] = []
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Delivered) -> None:
            offset = message.offset()
            if error is not None:
                failures.append(error)
            elif offset is not None and offset >= 0:
                offsets.append(offset)

        for message in messages:
            stamp: dict[str, Any] = {} if message.timestamp_ms is None else {"timestamp": message.timestamp_ms}
            headers: Any = list(message.headers)
            producer.produce(
                topic, message.value, message.key, partition, on_delivery=delivered, headers=headers, **stamp
            )
        left = producer.flush(DEADLINE_S)
        if failures:
            raise Refused(failures[0].code(), failures[0].str())
        if left:
            raise TimeoutError(f"{left} messages undelivered after {DEADLINE_S} s")
        return offsets

    @contextmanager
    def reader(self, topic: str, reading: Reading, partition: int = 0) -> Iterator[Reader]:
        consumer = self._consumer(reading)
        first = confluent_kafka.OFFSET_END if reading.start == END else reading.start
        try:
            consumer.assign([TopicPartition(topic, partition, first)])
            yield ConfluentReader(consumer)
        finally:
            consumer.close()

    def consume_near(self, topic: str, count: int, rack: str) -> tuple[list[Received], int]:
        told: list[str] = []
        near = {"client.rack": rack, "statistics.interval.ms": 50, "stats_cb": told.append}
        consumer = self._consumer(Reading(), near)
        try:
            consumer.assign([TopicPartition(topic, 0, 0)])
            received = ConfluentReader(consumer).take(count)
            told.clear()
            until = time.monotonic() + DEADLINE_S
            while not told and time.monotonic() < until:
                consumer.poll(0.05)
            return received, int(json.loads(told[-1])["topics"][topic]["partitions"]["0"]["broker"])
        finally:
            consumer.close()

    def _consumer(self, reading: Reading, more: Mapping[str, Any] | None = None) -> Consumer:
        size = {} if reading.fetch_bytes is None else {"max.partition.fetch.bytes": reading.fetch_bytes}
        return Consumer(
            {
                **self._common,
                "group.id": "interop",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "fetch.error.backoff.ms": 10,
                "check.crcs": True,
                "fetch.wait.max.ms": reading.wait_ms,
                "auto.offset.reset": "error" if reading.reset == "none" else reading.reset,
                "isolation.level": "read_committed" if reading.committed_only else "read_uncommitted",
                **size,
                **(more or {}),
            }
        )

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        consumer = self._consumer(Reading())
        try:
            (found,) = consumer.offsets_for_times([TopicPartition(topic, partition, timestamp_ms)], timeout=DEADLINE_S)
            return -1 if found.offset == confluent_kafka.OFFSET_END else found.offset
        finally:
            consumer.close()

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return _patiently(lambda: self._watermarks(TopicPartition(topic, partition)))

    def _watermarks(self, where: TopicPartition) -> tuple[int, int]:
        consumer = self._consumer(Reading())
        try:
            low, high = consumer.get_watermark_offsets(where, timeout=DEADLINE_S)
            return low, high
        finally:
            consumer.close()

    def list_offset(self, topic: str, spec: Literal["earliest", "latest", "max_timestamp"], partition: int = 0) -> int:
        asked = getattr(OffsetSpec, spec)()
        return int(only(self._admin.list_offsets({TopicPartition(topic, partition): asked})).offset)

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        with surfaced():
            new = NewTopic(topic, plan.partitions, plan.replication, config=dict(plan.settings))
            only(self._admin.create_topics([new], validate_only=validate_only))

    def create_assigned(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        new = NewTopic(topic, len(replicas), replica_assignment=[list(brokers) for brokers in replicas])
        only(self._admin.create_topics([new]))

    def delete_topic(self, topic: str) -> None:
        only(self._admin.delete_topics([topic]))

    def list_topics(self) -> list[str]:
        return list(self._admin.list_topics(timeout=DEADLINE_S).topics)

    def describe_topic(self, topic: str) -> TopicShape:
        found = only(self._admin.describe_topics(TopicCollection([topic])))
        return TopicShape(
            partitions=tuple(partition.id for partition in found.partitions),
            leaders=tuple(partition.leader.id for partition in found.partitions),
            replicas=tuple(tuple(node.id for node in partition.replicas) for partition in found.partitions),
            in_sync=tuple(tuple(node.id for node in partition.isr) for partition in found.partitions),
            topic_id=str(found.topic_id),
        )

    def create_partitions(self, topic: str, total: int, *, validate_only: bool = False) -> None:
        only(self._admin.create_partitions([NewPartitions(topic, total)], validate_only=validate_only))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        upto = confluent_kafka.OFFSET_END if before == END else before
        return int(only(self._admin.delete_records([TopicPartition(topic, partition, upto)])).low_watermark)

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings(ConfigResource(ResourceType.TOPIC, topic))

    def broker_settings(self, broker: int) -> dict[str, Setting]:
        return self._settings(ConfigResource(ResourceType.BROKER, str(broker)))

    def _settings(self, resource: ConfigResource) -> dict[str, Setting]:
        entries = only(self._admin.describe_configs([resource]))
        own = (ConfigSource.DYNAMIC_TOPIC_CONFIG.value, ConfigSource.DYNAMIC_BROKER_CONFIG.value)
        return {name: Setting(value=entry.value, own=entry.source in own) for name, entry in entries.items()}

    def change_settings(self, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        resource = changed(ResourceType.TOPIC, topic, changes)
        only(self._admin.incremental_alter_configs([resource], validate_only=validate_only))

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        only(self._admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config=dict(settings))]))

    def describe_cluster(self) -> ClusterShape:
        with surfaced():
            found = self._admin.describe_cluster().result(DEADLINE_S)
        brokers = tuple((node.id, node.host, node.port) for node in found.nodes)
        return ClusterShape(cluster_id=found.cluster_id, controller=found.controller.id, brokers=brokers)

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        with surfaced():
            wanted = [TopicPartition(topic, partition)]
            (failure,) = self._admin.elect_leaders(ElectionType.PREFERRED, wanted).result(DEADLINE_S).values()
            if failure is not None:
                raise failure


def _patiently(ask: Callable[[], T]) -> T:
    """Ask again while a broker has not heard yet of what another has done, which librdkafka then remembers."""
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in NOT_KNOWN_YET or time.monotonic() > until:
                raise
            time.sleep(0.01)
