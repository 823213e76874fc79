"""Registered producers and consumers of the HTTP queue: the records of a topic that is compacted and has one partition.

The id of a registration is the offset of its record, plus one: an integer that is unique in the cluster, that every
broker can look up with one read, and that outlives restarts. Keys are random, so compaction keeps all of them.

Each registration has a producer id of Kafka's own, whose sequence numbers are the request ids of its requests. So the
batch of a numbered message tells who produced it.
"""

import json
from typing import Any, Final, Literal

from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName

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
        return group_of(self.id)


def group_of(consumer: int) -> str:
    return f"http-consumer-{consumer}"


def encode_registration(kind: Kind, topic: str, partitions: int, sequencer: int) -> bytes:
    value = {"version": VERSION, "kind": kind, "topic": topic, "partitions": partitions, "sequencer": sequencer}
    return json.dumps(value).encode()


def read_registration(offset: int, value: bytes) -> Registration:
    fields: dict[str, Any] = json.loads(value)
    return Registration(
        id=offset + 1,
        kind=fields["kind"],
        topic=fields["topic"],
        partitions=fields["partitions"],
        sequencer=fields["sequencer"],
    )
