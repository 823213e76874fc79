"""A client that makes, changes and deletes topics and trims a partition, and remembers what it was promised.

Of each of a few names it knows whether the topic is there, and with which id and setting; after a request that nobody
answered it knows nothing until it has looked. It looks after each restart of the broker. Into every topic it makes it
writes a few records that carry the topic's id, so that a topic of the same name can be seen to begin empty. Producer
ids must never come twice.
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
SETTING: Final = "flush.messages"  # one that changes nothing else
TOPIC_RESOURCE: Final = 2
EVERYTHING: Final = -1


@dataclass(slots=True)
class KnownTopic:
    """What is known of one name. Not `sure`: a change was asked for, and nobody knows what became of it."""

    sure: bool = True
    topic_id: Id | None = None  # None: there is no such topic
    value: str | None = None  # of the setting, where it is known
    written: int = 0  # records acknowledged


class Administrator:
    def __init__(self, ports: Ports, rng: random.Random, broker: str, trimmed_topic: str) -> None:
        self._rng = rng
        self._clock = ports.clock
        self._caller = ReconnectingClient(ports, "admin", broker)
        self._trimmed_topic = trimmed_topic
        self._known = {name: KnownTopic() for name in NAMES}
        self._producer_ids: dict[int, None] = {}
        self.trimmed_to = 0  # records below were deleted, and that was acknowledged
        self.changes = 0  # acknowledged
        self.looks = 0  # after restarts
        self.look_due = False
        self.stopping = False

    async def run(self) -> None:
        acts = [self._make, self._make, self._delete, self._set, self._write, self._write, self._trim, self._take_id]
        while not self.stopping:
            if self.look_due:
                self.look_due = not await self._look()
            else:
                await self._rng.choice(acts)()
            await asyncio.sleep(self._rng.random() * 0.1)

    # What it does

    async def _make(self) -> None:
        name = self._rng.choice(NAMES)
        topic = NewTopic(name=name, num_partitions=self._rng.choice([1, 3]), replication_factor=1)
        response = await self._caller.call(CreateTopicsRequest(topics=(topic,)), 7)
        code = None if response is None else response.topics[0].error_code
        changed = self._answered(name, code, said_there=Error.TOPIC_ALREADY_EXISTS, said_gone=Error.NONE)
        if changed and response is not None:
            self._known[name] = KnownTopic(topic_id=response.topics[0].topic_id)

    async def _delete(self) -> None:
        name = self._rng.choice(NAMES)
        response = await self._caller.call(DeleteTopicsRequest(topics=(TopicToDelete(name=name),)), 6)
        code = None if response is None else response.topics[0].error_code
        if self._answered(name, code, said_there=Error.NONE, said_gone=Error.UNKNOWN_TOPIC_OR_PARTITION):
            self._known[name] = KnownTopic()

    def _answered(self, name: str, code: int | None, *, said_there: Error, said_gone: Error) -> bool:
        """Hold an answer against what is known of the topic before it; whether something was changed."""
        known = self._known[name]
        if code is None or code not in (said_there, said_gone):
            if code is not None and not Error(code).retriable:
                raise GuaranteeViolated(f"{name}: a change was refused: {Error(code).name}")
            known.sure = False
            return False
        if known.sure and (known.topic_id is not None) != (code == said_there):
            raise GuaranteeViolated(f"{name} is {known}, but the broker answers {Error(code).name}")
        known.sure = known.sure or code == said_gone
        self.changes += code == 0
        return code == 0

    async def _set(self) -> None:
        name = self._rng.choice(NAMES)
        known = self._known[name]
        if known.topic_id is None or not known.sure:
            return
        value = str(self._rng.randrange(1_000_000, 2_000_000))
        changes = (ConfigChange(name=SETTING, config_operation=0, value=value),)
        resource = ResourceToAlter(resource_type=TOPIC_RESOURCE, resource_name=name, configs=changes)
        known.value = None
        response = await self._caller.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
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
        response = await self._caller.call(ProduceRequest(acks=-1, timeout_ms=2000, topics=(topic,)), 9)
        if response is not None and response.topics[0].partitions[0].error_code == 0:
            known.written += 1

    async def _trim(self) -> None:
        history = await read_partition(self._caller, self._trimmed_topic, 0, self.trimmed_to)
        if history is None:
            return
        keep = self._rng.choice([EVERYTHING, self._rng.randint(history.log_start, history.high_watermark)])
        topic = TopicToTrim(name=self._trimmed_topic, partitions=(PartitionToTrim(partition=0, offset=keep),))
        response = await self._caller.call(DeleteRecordsRequest(topics=(topic,)), 2)
        if response is not None and response.topics[0].partitions[0].error_code == 0:
            start = response.topics[0].partitions[0].low_watermark
            if start < keep:
                raise GuaranteeViolated(f"{self._trimmed_topic} was trimmed to {keep}, and begins at {start}")
            self.trimmed_to = max(self.trimmed_to, start)
            self.changes += 1

    async def _take_id(self) -> None:
        response = await self._caller.call(InitProducerIdRequest(transaction_timeout_ms=0), 1)
        if response is not None and response.error_code == 0:
            self.took(response.producer_id)

    def took(self, producer_id: int) -> None:
        if producer_id in self._producer_ids:
            raise GuaranteeViolated(f"producer id {producer_id} was given twice")
        self._producer_ids[producer_id] = None

    # What must hold

    async def _look(self) -> bool:
        """Hold what the broker shows against what it promised; False: it went away meanwhile."""
        for name, known in list(self._known.items()):
            request = MetadataRequest(topics=(TopicWanted(name=name),), allow_auto_topic_creation=False)
            response = await self._caller.call(request, 12)
            if response is None:
                return False
            shown = response.topics[0]
            topic_id = shown.topic_id if shown.error_code == 0 else None
            if not known.sure:
                self._known[name] = KnownTopic(topic_id=topic_id)
            elif known.topic_id != topic_id:
                raise GuaranteeViolated(f"{name} should be {known}, it is {shown}")
            elif topic_id is not None and not await self._look_into(name, known, topic_id):
                return False
        self.looks += 1
        return True

    async def _look_into(self, name: str, known: KnownTopic, topic_id: Id) -> bool:
        asked = ResourceAsked(resource_type=TOPIC_RESOURCE, resource_name=name, config_names=(SETTING,))
        response = await self._caller.call(DescribeConfigsRequest(resources=(asked,)), 4)
        history = await read_partition(self._caller, name, 0, 0)
        if response is None or history is None:
            return False
        found = response.results[0].configs[0].value
        if known.value is not None and found != known.value:
            raise GuaranteeViolated(f"{name}: {SETTING} should be {known.value}, it is {found}")
        mine = show_id(topic_id).encode()
        if len(history.records) < known.written or any(record.value != mine for record in history.records):
            raise GuaranteeViolated(f"{name}: {len(history.records)} records, {known.written} were acknowledged")
        return True
