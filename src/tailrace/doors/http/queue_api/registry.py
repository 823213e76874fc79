"""Registered producers and consumers: records of a topic that is compacted and has one partition.

The id of a registration is the offset of its record, plus one: an integer that is unique in the cluster, that every
broker can look up with one read, and that outlives restarts. Keys are random, so compaction keeps all of them. A door
keeps what it has looked up; registrations never change.

Each registration has a producer id of Kafka's own, whose sequence numbers are the request ids of its requests.
"""

import json
from collections import OrderedDict
from typing import Any, Final, Literal

from tailrace.client.sequenced import record_at
from tailrace.client.topics import make_topic, partitions_of
from tailrace.client.transactions import begin_epoch
from tailrace.doors.upstream import Upstream
from tailrace.model.caller import Caller
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.limits import HTTP_REGISTRATIONS_KEPT_MAX
from tailrace.ports import Ports

REGISTRATIONS: Final = PartitionName("__http_registrations", 0)
VERSION: Final = 1
Kind = Literal["producer", "consumer"]


@frozen
class Registration:
    id: int
    kind: Kind
    topic: str
    partitions: int  # that the topic had: numbered requests of a producer go to these, in turn
    sequencer: int  # Kafka's producer id

    @property
    def group(self) -> str:
        """The share group of a consumer."""
        return f"http-consumer-{self.id}"


class Registry:
    def __init__(self, upstream: Upstream, ports: Ports) -> None:
        self._upstream = upstream
        self._random = ports.random
        self._kept: OrderedDict[int, Registration] = OrderedDict()  # the one that was used last at the end

    async def register(self, kind: Kind, topic: str, partitions: int, caller: Caller) -> Registration:
        """Returns when the registration is durable."""
        cluster = self._upstream.cluster
        if await partitions_of(cluster, REGISTRATIONS.topic) is None:
            await make_topic(cluster, REGISTRATIONS.topic, 1, cleanup_policy="compact")
        sequencer = (await begin_epoch(cluster, None)).id
        value = {
            "version": VERSION, "kind": kind, "topic": topic, "partitions": partitions, "sequencer": sequencer
        }  # fmt: skip
        key = str(self._random.new_id())
        with self._upstream.producers.of(caller.principal) as producer:
            sent = await producer.send(
                REGISTRATIONS.topic, json.dumps(value).encode(), key=key.encode(), partition=REGISTRATIONS.partition
            )
            written = await sent
        found = _registration(written.offset, value)
        self._keep(found)
        return found

    async def find(self, kind: Kind, number: int) -> Registration | None:
        """None if no producer, or consumer, has this id."""
        found = self._kept.get(number)
        if found is None:
            found = await self._look_up(number)
        if found is not None:
            self._keep(found)
        return found if found is not None and found.kind == kind else None

    async def _look_up(self, number: int) -> Registration | None:
        cluster = self._upstream.cluster
        if number < 1 or await partitions_of(cluster, REGISTRATIONS.topic) is None:
            return None
        record = await record_at(cluster, REGISTRATIONS, number - 1)
        if record is None or record.value is None:
            return None
        value: dict[str, Any] = json.loads(record.value)
        return _registration(record.offset, value)

    def _keep(self, found: Registration) -> None:
        self._kept[found.id] = found
        self._kept.move_to_end(found.id)
        if len(self._kept) > HTTP_REGISTRATIONS_KEPT_MAX:
            self._kept.popitem(last=False)


def _registration(offset: int, value: dict[str, Any]) -> Registration:
    return Registration(
        id=offset + 1,
        kind=value["kind"],
        topic=value["topic"],
        partitions=value["partitions"],
        sequencer=value["sequencer"],
    )
