"""aiokafka: pure Python on asyncio, running on a loop in a thread of its own so that fetches go on between calls.

It starts with ApiVersions v0 and stops at old versions; its admin hands back raw responses, errors left in them.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, TypeVar

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError

from tests.interop.client import BASICS, DEADLINE_S, Client, Refused, TlsOptions
from tests.interop.drivers.aio_transactions import AioTransactor
from tests.interop.drivers.pure_python import connection_settings, consumer_settings, producer_settings, received_from
from tests.interop.member import Member, in_python
from tests.interop.messages import AS_USUAL, END, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import ONE_PARTITION, ClusterShape, GroupShape, Setting, TopicPlan, TopicShape
from tests.interop.transactor import Transactor

Answer = TypeVar("Answer")
OWN_SOURCES = (1, 2)  # DescribeConfigs: set on the topic, set on the broker


class Loop:
    """An event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(DEADLINE_S)
        except KafkaError as refusal:
            raise Refused(getattr(refusal, "errno", -1), repr(refusal)) from refusal

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()


class AioReader:
    def __init__(self, loop: Loop, consumer: AIOKafkaConsumer) -> None:
        self._loop = loop
        self._consumer = consumer

    def take(self, count: int) -> list[Received]:
        return self._loop.run(self._take(count))

    async def _take(self, count: int) -> list[Received]:
        return [received_from(await self._consumer.getone()) for _ in range(count)]


def check(code: int, text: str | None = None) -> None:
    if code:
        raise Refused(code, text or "")


class Aiokafka(Client):
    name = "aiokafka"
    also = BASICS | {"TLS", "asks the next coordinator again", "null headers"}

    def __init__(self, bootstrap: str, tls: TlsOptions | None = None) -> None:
        super().__init__(bootstrap, tls)
        self._common = connection_settings(bootstrap, self.name, tls)
        self._loop = Loop()
        self._admin: AIOKafkaAdminClient = self._loop.run(self._start_admin())

    async def _start_admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._common)
        await admin.start()
        return admin

    @classmethod
    def version(cls) -> str:
        return str(aiokafka.__version__)

    def close(self) -> None:
        self._loop.run(self._admin.close())
        self._loop.close()

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        return self._loop.run(self._produce(topic, messages, sending, partition))

    async def _produce(self, topic: str, messages: Sequence[Message], sending: Sending, partition: int) -> list[int]:
        producer = AIOKafkaProducer(**self._common, **producer_settings(sending))
        await producer.start()
        try:
            sent = [
                await producer.send(
                    topic, m.value, m.key, partition, timestamp_ms=m.timestamp_ms, headers=list(m.headers)
                )
                for m in messages
            ]
            delivered = [await future for future in sent]
            return [one.offset for one in delivered if one is not None and one.offset >= 0]
        finally:
            await producer.stop()

    @contextmanager
    def reader(self, topic: str, reading: Reading, partition: int = 0) -> Iterator[Reader]:
        consumer = self._loop.run(self._consumer(reading))
        try:
            self._loop.run(self._place(consumer, TopicPartition(topic, partition), reading.start))
            yield AioReader(self._loop, consumer)
        finally:
            self._loop.run(consumer.stop())

    def consume_near(self, topic: str, count: int, rack: str) -> tuple[list[Received], int]:
        where = TopicPartition(topic, 0)
        consumer = self._loop.run(self._consumer(Reading(), client_rack=rack))
        try:
            self._loop.run(self._place(consumer, where, 0))
            received = AioReader(self._loop, consumer).take(count)
            (leader,) = self.describe_topic(topic).leaders
            near, _ = consumer._fetcher._preferred_read_replica.get(where, (leader, 0.0))  # it says so nowhere
            return received, near
        finally:
            self._loop.run(consumer.stop())

    async def _consumer(self, reading: Reading, **more: Any) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(**self._common, **consumer_settings(reading), **more)
        await consumer.start()
        return consumer

    async def _place(self, consumer: AIOKafkaConsumer, where: TopicPartition, start: int) -> None:
        consumer.assign([where])
        if start == END:
            await consumer.seek_to_end(where)
        else:
            consumer.seek(where, start)

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> Member:
        return Member(in_python("aio"), self.bootstrap, topic, group, strategy, instance)

    def transactor(self, name: str, timeout_ms: int = 60_000) -> AbstractContextManager[Transactor]:
        return closing(AioTransactor(self._loop, self._common, name, timeout_ms))

    def list_groups(self) -> dict[str, str]:
        return {group: "" for group, _ in self._loop.run(self._admin.list_consumer_groups())}

    def describe_group(self, group: str) -> GroupShape:
        (answer,) = self._loop.run(self._admin.describe_consumer_groups([group]))
        ((_, _, state, _, protocol, members),) = answer.groups
        return GroupShape(state=state, protocol=protocol, clients=tuple(member[1] for member in members))

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = self._loop.run(self._admin.list_consumer_group_offsets(group))
        return {where.partition: one.offset for where, one in found.items() if where.topic == topic}

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        return self._loop.run(self._offset_at(TopicPartition(topic, partition), timestamp_ms))

    async def _offset_at(self, where: TopicPartition, timestamp_ms: int) -> int:
        consumer = await self._consumer(Reading())
        try:
            found = (await consumer.offsets_for_times({where: timestamp_ms}))[where]
            return -1 if found is None else int(found.offset)
        finally:
            await consumer.stop()

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return self._loop.run(self._watermarks(TopicPartition(topic, partition)))

    async def _watermarks(self, where: TopicPartition) -> tuple[int, int]:
        consumer = await self._consumer(Reading())
        try:
            first = await consumer.beginning_offsets([where])
            following = await consumer.end_offsets([where])
            return first[where], following[where]
        finally:
            await consumer.stop()

    def create_topic(self, topic: str, plan: TopicPlan = ONE_PARTITION, *, validate_only: bool = False) -> None:
        new = NewTopic(topic, plan.partitions, plan.replication, topic_configs=dict(plan.settings))
        self._create(new, validate_only)

    def create_assigned(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        assigned = {partition: list(brokers) for partition, brokers in enumerate(replicas)}
        self._create(NewTopic(topic, -1, -1, replica_assignments=assigned), validate_only=False)

    def _create(self, new: NewTopic, validate_only: bool) -> None:
        answer = self._loop.run(self._admin.create_topics([new], validate_only=validate_only))
        ((_, code, *text),) = answer.topic_errors
        check(code, str(text))

    def delete_topic(self, topic: str) -> None:
        answer = self._loop.run(self._admin.delete_topics([topic]))
        ((_, code),) = answer.topic_error_codes
        check(code)

    def list_topics(self) -> list[str]:
        return self._loop.run(self._admin.list_topics())

    def describe_topic(self, topic: str) -> TopicShape:
        (found,) = self._loop.run(self._admin.describe_topics([topic]))
        check(found["error_code"])
        partitions = sorted(found["partitions"], key=lambda partition: partition["partition"])
        return TopicShape(
            partitions=tuple(partition["partition"] for partition in partitions),
            leaders=tuple(partition["leader"] for partition in partitions),
            replicas=tuple(tuple(partition["replicas"]) for partition in partitions),
            in_sync=tuple(tuple(partition["isr"]) for partition in partitions),
        )

    def create_partitions(self, topic: str, total: int, *, validate_only: bool = False) -> None:
        self._loop.run(self._admin.create_partitions({topic: NewPartitions(total)}, validate_only=validate_only))

    def delete_records(self, topic: str, before: int, partition: int = 0) -> int:
        where = TopicPartition(topic, partition)
        return int(self._loop.run(self._admin.delete_records({where: RecordsToDelete(before)}))[where])

    def topic_settings(self, topic: str) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResourceType.TOPIC, topic))

    def broker_settings(self, broker: int) -> dict[str, Setting]:
        return self._settings(ConfigResource(ConfigResourceType.BROKER, str(broker)))

    def _settings(self, resource: ConfigResource) -> dict[str, Setting]:
        (answer,) = self._loop.run(self._admin.describe_configs([resource]))
        ((code, text, _, _, entries),) = answer.resources
        check(code, text)
        return {name: Setting(value=value, own=source in OWN_SOURCES) for name, value, _, source, *_ in entries}

    def replace_settings(self, topic: str, settings: Mapping[str, str]) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))
        (answer,) = self._loop.run(self._admin.alter_configs([resource]))
        ((code, text, *_),) = answer.resources
        check(code, text)

    def describe_cluster(self) -> ClusterShape:
        found = self._loop.run(self._admin.describe_cluster())
        brokers = tuple((broker["node_id"], broker["host"], broker["port"]) for broker in found["brokers"])
        return ClusterShape(cluster_id=found["cluster_id"], controller=found["controller_id"], brokers=brokers)
