"""kafka-python: pure Python, the newest version of every request that it knows, incremental fetch sessions."""

import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer.offsets import OffsetSpec

from tests.interop.client import BASICS, DEADLINE_S, Refused, TlsOptions
from tests.interop.drivers.kafka_python_groups import KafkaPythonGroups
from tests.interop.drivers.kafka_python_refusals import surfaced
from tests.interop.drivers.kafka_python_transactions import KafkaPythonTransactions
from tests.interop.drivers.pure_python import connection_settings, consumer_settings, producer_settings, received_from
from tests.interop.messages import AS_USUAL, END, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import ONE_PARTITION, ClusterShape, QuorumShape, Setting, TopicPlan, TopicShape

PREFERRED = 0  # the kind of election


class KafkaPythonReader:
    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._waiting: deque[Any] = deque()

    def take(self, count: int) -> list[Received]:
        until = time.monotonic() + DEADLINE_S
        while len(self._waiting) < count:
            left_ms = int((until - time.monotonic()) * 1000)
            if left_ms <= 0:
                raise TimeoutError(f"{len(self._waiting)} of {count} records in {DEADLINE_S} s")
            with surfaced():
                for records in self._consumer.poll(timeout_ms=left_ms).values():
                    self._waiting.extend(records)
        return [received_from(self._waiting.popleft()) for _ in range(count)]


class KafkaPython(KafkaPythonGroups, KafkaPythonTransactions):
    name = "kafka-python"
    also = BASICS | {"TLS", "cooperative-sticky", "default counts", "describing creates nothing", "topic ids"}

    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        super().__init__(bootstrap, tls)
        self._common = connection_settings(bootstrap, self.name, tls)
        self._admin = KafkaAdminClient(**self._common)

    @classmethod
    def version(cls) -> str:
        return str(kafka.__version__)

    def close(self) -> None:
        self._admin.close()

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        producer = KafkaProducer(**self._common, **producer_settings(sending))
        try:
            with surfaced():
                sent = [
                    producer.send(topic, m.value, m.key, list(m.headers), partition, timestamp_ms=m.timestamp_ms)
                    for m in messages
                ]
                delivered = [future.get(DEADLINE_S) for future in sent]
            return [one.offset for one in delivered if one.offset >= 0]
        finally:
            producer.close(timeout=DEADLINE_S)

    @contextmanager
    def reader(self, topic: str, reading: Reading, partition: int = 0) -> Iterator[Reader]:
        consumer = self._consumer(reading)
        where = TopicPartition(topic, partition)
        try:
            consumer.assign([where])
            if reading.start == END:
                consumer.seek_to_end(where)
            else:
                consumer.seek(where, reading.start)
            yield KafkaPythonReader(consumer)
        finally:
            consumer.close()

    def consume_near(self, topic: str, count: int, rack: str) -> tuple[list[Received], int]:
        where = TopicPartition(topic, 0)
        consumer = self._consumer(Reading(), client_rack=rack)
        try:
            consumer.assign([where])
            consumer.seek(where, 0)
            received = KafkaPythonReader(consumer).take(count)
            return received, _busiest(consumer.metrics())
        finally:
            consumer.close()

    def _consumer(self, reading: Reading, **more: Any) -> KafkaConsumer:
        return KafkaConsumer(**self._common, **consumer_settings(reading), **more)

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        consumer = self._consumer(Reading())
        try:
            found = consumer.offsets_for_times({where: timestamp_ms})[where]
            return -1 if found is None else int(found.offset)
        finally:
            consumer.close()

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        where = TopicPartition(topic, partition)
        consumer = self._consumer(Reading())
        try:
            return consumer.beginning_offsets([where])[where], consumer.end_offsets([where])[where]
        finally:
            consumer.close()

    def list_offset(self, topic: str, spec: Literal["earliest", "latest", "max_timestamp"], partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with surfaced():
            return int(self._admin.list_partition_offsets({where: OffsetSpec[spec.upper()]})[where].offset)

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        new = {
            "num_partitions": plan.partitions,
            "replication_factor": plan.replication,
            "configs": dict(plan.settings),
        }
        with surfaced():
            self._admin.create_topics({topic: new}, validate_only=validate_only)

    def create_assigned(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        assigned = {partition: list(brokers) for partition, brokers in enumerate(replicas)}
        with surfaced():
            self._admin.create_topics({topic: {"assignments": assigned}})

    def delete_topic(self, topic: str) -> None:
        with surfaced():
            self._admin.delete_topics([topic])

    def delete_topic_by_id(self, topic_id: str) -> None:
        with surfaced():
            self._admin.delete_topics([uuid.UUID(topic_id)])

    def list_topics(self) -> list[str]:
        return list(self._admin.list_topics())

    def describe_topic(self, topic: str) -> TopicShape:
        (found,) = self._admin.describe_topics([topic])
        if found["error_code"]:
            raise Refused(found["error_code"])
        partitions = found["partitions"]
        return TopicShape(
            partitions=tuple(partition["partition_index"] for partition in partitions),
            leaders=tuple(partition["leader_id"] for partition in partitions),
            replicas=tuple(tuple(partition["replica_nodes"]) for partition in partitions),
            in_sync=tuple(tuple(partition["isr_nodes"]) for partition in partitions),
            topic_id=str(found["topic_id"]),
        )

    def describe_topic_by_id(self, topic_id: str) -> str:
        (found,) = self._admin.describe_topics([uuid.UUID(topic_id)])
        return str(found["name"])

    def describe_pages(self, topics: Sequence[str], page: int) -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []
        cursor = None
        while True:
            answer = self._admin.describe_topic_partitions(list(topics), page, cursor)
            for topic in answer["topics"]:
                seen.extend((topic["name"], partition["partition_index"]) for partition in topic["partitions"])
            cursor = answer["next_cursor"]
            if cursor is None:
                return seen

    def create_partitions(self, topic: str, total: int, *, validate_only: bool = False) -> None:
        with surfaced():
            self._admin.create_partitions({topic: total}, validate_only=validate_only)

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        with surfaced():
            return int(self._admin.delete_records({where: before})[where]["low_watermark"])

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_settings(self, broker: int) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResourceType.BROKER, str(broker)))

    def _settings(self, resource: ConfigResource) -> dict[str, Setting]:
        answer = self._admin.describe_configs([resource], config_filter="all")
        entries = answer[resource.resource_type.name.lower()][resource.name]
        own = ("DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG")
        return {name: Setting(value=e["value"], own=e["config_source"] in own) for name, e in entries.items()}

    def change_settings(self, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False) -> None:
        configs = {name: ("DELETE" if value is None else "SET", value) for name, value in changes.items()}
        self._alter(topic, configs, incremental=True, validate_only=validate_only)

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        self._alter(topic, dict(settings), incremental=False, validate_only=False)

    def _alter(self, topic: str, configs: dict[str, Any], *, incremental: bool, validate_only: bool) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs)
        answer = self._admin.alter_configs(
            [resource], validate_only=validate_only, raise_on_unknown=False, incremental=incremental
        )
        outcome: str = answer["topic"][topic]
        if outcome != "OK":
            raise Refused(_code_of(outcome), outcome)

    def describe_cluster(self) -> ClusterShape:
        found = self._admin.describe_cluster()
        brokers = tuple((broker["broker_id"], broker["host"], broker["port"]) for broker in found["brokers"])
        return ClusterShape(cluster_id=found["cluster_id"], controller=found["controller_id"], brokers=brokers)

    def describe_quorum(self) -> QuorumShape:
        (quorum,) = self._admin.describe_metadata_quorum()["topics"][0]["partitions"]
        return QuorumShape(
            leader=quorum["leader_id"],
            voters=tuple(one["replica_id"] for one in quorum["current_voters"]),
            observers=tuple(one["replica_id"] for one in quorum["observers"]),
        )

    def elect_preferred(self, topic: str, partition: int = 0) -> None:
        with surfaced():
            self._admin.elect_leaders(PREFERRED, {topic: [partition]})

    def stored_bytes(self, topic: str) -> int:
        answer = self._admin.describe_log_dirs([topic])
        return sum(
            partition["partition_size"]
            for broker in answer
            for directory in broker["log_dirs"]
            for held in directory["topics"]
            for partition in held["partitions"]
        )

    def features(self) -> dict[str, tuple[int, int, int]]:
        with surfaced():
            found = self._admin.describe_features()
        return {name: (*one["supported"], one["finalized"][1]) for name, one in found.items()}

    def raise_feature(self, name: str, level: int, *, validate_only: bool = False) -> None:
        with surfaced():
            self._admin.update_features({name: level}, validate_only=validate_only)

    def configured(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self._admin.list_config_resources()
        return found


def _busiest(metrics: Mapping[str, Mapping[str, float]]) -> int:
    """Who sent most: after each answer of a follower it asks the leader again, who sends it back."""
    nodes = {
        group.rpartition("-")[2]: told["incoming-byte-rate"] for group, told in metrics.items() if ".node-" in group
    }
    return int(max(nodes, key=lambda node: nodes[node]))


def _code_of(outcome: str) -> int:
    """Alterations come back as text that names the error's class."""
    kind = getattr(kafka.errors, outcome.partition(":")[0].rpartition(" ")[2], None)
    return int(getattr(kind, "errno", -1))
