"""An admin client that creates, configures and deletes topics and trims a partition, and checks what was acknowledged.

For each of a few topic names it tracks whether the topic exists, and with which id and setting. After a request without
a response the state of that name is unknown until it is checked. All names are checked after each restart of the
broker. Into every topic that it creates the client writes a few records that carry the topic's id: a recreated topic
must not contain records of its predecessor. No producer id may be given out twice.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Final

from tailrace.model.ids import Id, show_id
from tailrace.ports import Ports
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.scenarios.power_cuts.read_back import GuaranteeViolated, read_partition
from tailrace.testing.scenarios.reconnecting_client import ReconnectingClient
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tailrace.wire.messages.produce import PartitionToProduce, ProduceRequest, TopicToProduce

NAMES: Final = ("a0", "a1", "a2")
SETTING: Final = "flush.messages"  # has no effect on the rest of the scenario
TOPIC_RESOURCE: Final = 2
HIGH_WATERMARK: Final = -1  # in DeleteRecords: delete everything


@dataclass(slots=True)
class KnownTopic:
    """What the client knows about one topic name."""

    sure: bool = True  # False: a change was requested, and no response said whether it was made
    topic_id: Id | None = None  # None: the topic does not exist
    value: str | None = None  # of the setting; None: unknown
    written: int = 0  # acknowledged records


class Administrator:
    def __init__(self, ports: Ports, rng: random.Random, broker: str, trimmed_topic: str) -> None:
        self._rng = rng
        self._clock = ports.clock
        self._client = ReconnectingClient(ports, "admin", broker)
        self._trimmed_topic = trimmed_topic
        self._known = {name: KnownTopic() for name in NAMES}
        self._producer_ids: dict[int, None] = {}
        self.trimmed_to = 0  # the highest log start offset that a DeleteRecords response acknowledged
        self.changes = 0  # acknowledged
        self.checks = 0  # of all names, after restarts
        self.check_due = False
        self.stopping = False

    async def run(self) -> None:
        actions = [
            self._create,
            self._create,
            self._delete,
            self._configure,
            self._write,
            self._write,
            self._trim,
            self._init_producer_id,
        ]
        while not self.stopping:
            if self.check_due:
                self.check_due = not await self._check_all()
            else:
                await self._rng.choice(actions)()
            await asyncio.sleep(self._rng.random() * 0.1)

    # Actions

    async def _create(self) -> None:
        name = self._rng.choice(NAMES)
        topic = NewTopic(name=name, num_partitions=self._rng.choice([1, 3]), replication_factor=1)
        response = await self._client.call(CreateTopicsRequest(topics=(topic,)), 7)
        code = None if response is None else response.topics[0].error_code
        changed = self._check_response(name, code, if_exists=Error.TOPIC_ALREADY_EXISTS, if_missing=Error.NONE)
        if changed and response is not None:
            self._known[name] = KnownTopic(topic_id=response.topics[0].topic_id)

    async def _delete(self) -> None:
        name = self._rng.choice(NAMES)
        response = await self._client.call(DeleteTopicsRequest(topics=(TopicToDelete(name=name),)), 6)
        code = None if response is None else response.topics[0].error_code
        if self._check_response(name, code, if_exists=Error.NONE, if_missing=Error.UNKNOWN_TOPIC_OR_PARTITION):
            self._known[name] = KnownTopic()

    def _check_response(self, name: str, code: int | None, *, if_exists: Error, if_missing: Error) -> bool:
        """Compare a response with what was known about the topic before; returns whether something was changed.

        `if_exists` and `if_missing` are the responses that are due if the topic exists and if it does not.
        """
        known = self._known[name]
        if code is None or code not in (if_exists, if_missing):
            if code is not None and not Error(code).retriable:
                raise GuaranteeViolated(f"{name}: the broker refused a change with {Error(code).name}")
            known.sure = False
            return False
        if known.sure and (known.topic_id is not None) != (code == if_exists):
            raise GuaranteeViolated(f"{name} is known as {known}, but the broker answers {Error(code).name}")
        known.sure = known.sure or code == if_missing
        self.changes += code == 0
        return code == 0

    async def _configure(self) -> None:
        name = self._rng.choice(NAMES)
        known = self._known[name]
        if known.topic_id is None or not known.sure:
            return
        value = str(self._rng.randrange(1_000_000, 2_000_000))
        changes = (ConfigChange(name=SETTING, config_operation=0, value=value),)
        resource = ResourceToAlter(resource_type=TOPIC_RESOURCE, resource_name=name, configs=changes)
        known.value = None
        response = await self._client.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        if response is not None and response.resources[0].error_code == 0:
            known.value = value
            self.changes += 1

    async def _write(self) -> None:
        name = self._rng.choice(NAMES)
        known = self._known[name]
        if known.topic_id is None or not known.sure:
            return
        record = NewRecord(value=show_id(known.topic_id).encode(), timestamp=self._clock.wall_ms())
        data = PartitionToProduce(partition=0, records=bytes(build_batch([record])))
        topic = TopicToProduce(name=name, partitions=(data,))
        response = await self._client.call(ProduceRequest(acks=-1, timeout_ms=2000, topics=(topic,)), 9)
        if response is not None and response.topics[0].partitions[0].error_code == 0:
            known.written += 1

    async def _trim(self) -> None:
        content = await read_partition(self._client, self._trimmed_topic, 0, self.trimmed_to)
        if content is None:
            return
        offset = self._rng.choice([HIGH_WATERMARK, self._rng.randint(content.log_start, content.high_watermark)])
        topic = TopicToTrim(name=self._trimmed_topic, partitions=(PartitionToTrim(partition=0, offset=offset),))
        response = await self._client.call(DeleteRecordsRequest(topics=(topic,)), 2)
        if response is not None and response.topics[0].partitions[0].error_code == 0:
            start = response.topics[0].partitions[0].low_watermark
            if start < offset:
                raise GuaranteeViolated(f"{self._trimmed_topic} was trimmed to {offset}, but starts at {start}")
            self.trimmed_to = max(self.trimmed_to, start)
            self.changes += 1

    async def _init_producer_id(self) -> None:
        response = await self._client.call(InitProducerIdRequest(transaction_timeout_ms=0), 1)
        if response is not None and response.error_code == 0:
            self.add_producer_id(response.producer_id)

    def add_producer_id(self, producer_id: int) -> None:
        if producer_id in self._producer_ids:
            raise GuaranteeViolated(f"producer id {producer_id} was given out twice")
        self._producer_ids[producer_id] = None

    # Checks

    async def _check_all(self) -> bool:
        """Compare every topic with what was acknowledged; False if the broker stopped answering meanwhile."""
        for name, known in list(self._known.items()):
            request = MetadataRequest(topics=(TopicWanted(name=name),), allow_auto_topic_creation=False)
            response = await self._client.call(request, 12)
            if response is None:
                return False
            described = response.topics[0]
            topic_id = described.topic_id if described.error_code == 0 else None
            if not known.sure:
                self._known[name] = KnownTopic(topic_id=topic_id)
            elif known.topic_id != topic_id:
                raise GuaranteeViolated(f"{name} is known as {known}, but Metadata shows {described}")
            elif topic_id is not None and not await self._check_topic(name, known, topic_id):
                return False
        self.checks += 1
        return True

    async def _check_topic(self, name: str, known: KnownTopic, topic_id: Id) -> bool:
        asked = ResourceAsked(resource_type=TOPIC_RESOURCE, resource_name=name, config_names=(SETTING,))
        response = await self._client.call(DescribeConfigsRequest(resources=(asked,)), 4)
        content = await read_partition(self._client, name, 0, 0)
        if response is None or content is None:
            return False
        found = response.results[0].configs[0].value
        if known.value is not None and found != known.value:
            raise GuaranteeViolated(f"{name}: {SETTING} was set to {known.value}, but is {found}")
        expected = show_id(topic_id).encode()
        if any(record.value != expected for record in content.records):
            raise GuaranteeViolated(f"{name}: records of an earlier topic of this name are in the log")
        if len(content.records) < known.written:
            raise GuaranteeViolated(f"{name}: {len(content.records)} records, but {known.written} were acknowledged")
        return True
