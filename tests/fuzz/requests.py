"""Valid requests for every API and version, made from the declarations: sensible ones, and well-formed nonsense.

Sensible means that names, ids, partitions and offsets are such that the broker finds them, so that a request gets past
the first check and a mutation of it into the depths. Whatever a field is called decides what it gets.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tailrace.doors.kafka.registry import APIS
from tailrace.model.ids import NO_ID, Id
from tailrace.records.build import build_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.record import NewRecord
from tailrace.wire.compile import encode, is_flexible
from tailrace.wire.headers import request_header
from tailrace.wire.messages import MESSAGES
from tailrace.wire.schema import Array, Field, Kind, Struct, fields_of
from tests.unit.wire.samples import sample

PARTITIONS_EACH: Final = 3
CLIENT_ID: Final = "fuzz"

EVERY_REQUEST: Final = [
    (key, version)
    for key, api in APIS.items()
    for version in range(api.versions.first, api.versions.last + 1)
    if version in MESSAGES[key].versions
]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is there on the broker: the topics that last by their ids, and names that come and go."""

    topics: Mapping[str, Id]
    fleeting: Sequence[str]
    broker_id: int

    def name(self, chance: random.Random) -> str:
        return chance.choice([*self.topics, *self.fleeting])

    def topic_id(self, chance: random.Random) -> Id:
        return chance.choice([*self.topics.values(), NO_ID])


Choose = Callable[[random.Random, World], Any]


def batch(chance: random.Random) -> bytearray:
    """A batch as a producer would send it."""
    now_ms = int(time.time() * 1000)
    records = [
        NewRecord(
            value=chance.randbytes(chance.choice([0, 1, 20, 300])),
            key=chance.choice([None, b"key"]),
            timestamp=now_ms - chance.randrange(1000),
            headers=(("name", b"value"),) if chance.random() < 0.2 else (),
        )
        for _ in range(chance.choice([1, 1, 2, 5, 20]))
    ]
    idempotent = chance.random() < 0.2
    return build_batch(
        records,
        compression=chance.choice(COMPRESSIONS),
        producer_id=chance.randrange(20) if idempotent else -1,
        producer_epoch=0 if idempotent else -1,
        base_sequence=chance.randrange(3) if idempotent else -1,
    )


SETTINGS: Final = ("retention.ms", "segment.bytes", "max.message.bytes", "cleanup.policy", "compression.type")

BY_NAME: Final[Mapping[str, Choose]] = {
    "transactional_id": lambda chance, world: None,
    "acks": lambda chance, world: chance.choice([-1, -1, 1, 1, 0]),
    "timeout_ms": lambda chance, world: 1000,
    "topic_id": lambda chance, world: world.topic_id(chance),
    "partition": lambda chance, world: chance.randrange(PARTITIONS_EACH),
    "partitions": lambda chance, world: tuple(range(chance.randrange(PARTITIONS_EACH))),
    "records": lambda chance, world: bytes(batch(chance)),
    "replica_id": lambda chance, world: -1,
    "max_wait_ms": lambda chance, world: chance.choice([0, 0, 1, 5]),
    "min_bytes": lambda chance, world: chance.choice([0, 1, 100]),
    "max_bytes": lambda chance, world: chance.choice([1, 1000, 100_000]),
    "partition_max_bytes": lambda chance, world: chance.choice([1, 1000, 100_000]),
    "session_id": lambda chance, world: 0,
    "session_epoch": lambda chance, world: chance.choice([-1, -1, 0]),
    "current_leader_epoch": lambda chance, world: chance.choice([-1, -1, 1]),
    "leader_epoch": lambda chance, world: chance.choice([0, 1]),
    "fetch_offset": lambda chance, world: chance.choice([0, 0, 1, 50]),
    "offset": lambda chance, world: chance.choice([0, 1, -1]),
    "timestamp": lambda chance, world: chance.choice([-1, -2, -3, -4, 0, int(time.time() * 1000) - 500]),
    "num_partitions": lambda chance, world: chance.choice([-1, 1, 3]),
    "replication_factor": lambda chance, world: chance.choice([-1, 1]),
    "assignments": lambda chance, world: (),
    "count": lambda chance, world: chance.choice([3, 4, 5]),
    "resource_type": lambda chance, world: chance.choice([2, 2, 4]),
    "resource_name": lambda chance, world: world.name(chance),
    "validate_only": lambda chance, world: chance.random() < 0.7,
    "value": lambda chance, world: chance.choice(["delete", "100000", "producer", "-1", "x"]),
    "config_operation": lambda chance, world: chance.randrange(4),
    "broker_ids": lambda chance, world: (world.broker_id,),
    "group_id": lambda chance, world: chance.choice(["g", "h", ""]),
    "groups_names": lambda chance, world: ("g",),
    "coordinator_keys": lambda chance, world: ("g", "h"),
    "key_type": lambda chance, world: 0,
    "member_id": lambda chance, world: chance.choice(["", "", "somebody"]),
    "group_instance_id": lambda chance, world: chance.choice([None, None, "i", "j"]),
    "session_timeout_ms": lambda chance, world: chance.choice([6000, 6000, 1]),
    "rebalance_timeout_ms": lambda chance, world: chance.choice([1, 50]),  # others wait for it
    "generation_id": lambda chance, world: chance.choice([-1, 0, 1, 2]),
    "generation_id_or_member_epoch": lambda chance, world: chance.choice([-1, -1, 1]),
    "protocol_type": lambda chance, world: "consumer",
    "committed_metadata": lambda chance, world: chance.choice([None, "", "note"]),
    "partition_indexes": lambda chance, world: tuple(range(PARTITIONS_EACH)),
}
NAMES_OF_SETTINGS: Final = ("NewTopicConfig", "NewConfig", "ConfigChange")
NAMES_OF_TOPICS: Final = ("name", "topic", "key")


def sensible(key: int, version: int, chance: random.Random, world: World) -> Any:
    """A request that the broker can do something with."""
    return _struct(MESSAGES[key].request, version, chance, world)


def nonsense(key: int, version: int, chance: random.Random) -> Any:
    """A request that is well formed, and whose values are anything."""
    return sample(MESSAGES[key].request, version, chance.randrange(2**31))


def frame(request: object, key: int, version: int, correlation_id: int) -> bytearray:
    """Header and body, without the length before them."""
    out = bytearray(request_header(key, version, correlation_id, CLIENT_ID, is_flexible(type(request), version)))
    out += encode(request, version)
    return out


def _struct(cls: type, version: int, chance: random.Random, world: World) -> Any:
    present = [field for field in fields_of(cls) if version in field.versions]
    sent = [field for field in present if field.tag is None or chance.random() < 0.3]
    return cls(**{field.name: _field(cls, field, version, chance, world) for field in sent})


def _field(cls: type, field: Field, version: int, chance: random.Random, world: World) -> Any:
    if field.name in NAMES_OF_TOPICS or field.name.endswith("_names"):
        text = chance.choice(SETTINGS) if cls.__name__ in NAMES_OF_SETTINGS else world.name(chance)
        return (text,) if isinstance(field.kind, Array) else text
    if isinstance(field.kind, Array) and isinstance(field.kind.element, Struct) and field.name != "assignments":
        return _array(field.kind.element, version, chance, world)
    choose = BY_NAME.get(field.name)
    if choose is not None:
        value = choose(chance, world)
        return value if value is not None or version in field.nullable else ""
    return _plain(field.kind, cls, field, version, chance, world)


def _array(element: Struct, version: int, chance: random.Random, world: World) -> tuple[Any, ...]:
    return tuple(_struct(element.declared, version, chance, world) for _ in range(chance.choice([1, 1, 2])))


def _plain(kind: Kind, cls: type, field: Field, version: int, chance: random.Random, world: World) -> Any:
    if isinstance(kind, Struct):
        return _struct(kind.declared, version, chance, world)
    return getattr(sample(cls, version, chance.randrange(50)), field.name)
