"""How topics begin and grow: checked, placed, and put into records.

New partitions are placed by `load`: what brokers hold, with what was proposed just now and no image says yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from tailrace.cluster import placement
from tailrace.cluster.brokers import Broker, Load
from tailrace.cluster.image import Image, Resource, Topic, plain
from tailrace.cluster.placement import BY_DEFAULT, REPLICAS_BY_DEFAULT_MAX, ReplicaList, factor_for, place
from tailrace.cluster.records import MetadataRecord, PartitionAdded, PartitionWidened, SettingChanged, TopicAdded
from tailrace.model.faults import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidTopicName,
    PolicyViolation,
    TopicExists,
)
from tailrace.model.frozen import frozen
from tailrace.model.ids import Id
from tailrace.model.limits import PARTITIONS_PER_BROKER_MAX, PARTITIONS_PER_TOPIC_MAX
from tailrace.model.proposal import Proposal
from tailrace.model.topics import INTERNAL_TOPICS, check_topic_name, check_topic_setting


@frozen
class NewTopic:
    """A topic somebody wants. Where `assignment` names replicas for each partition, the two numbers are -1."""

    name: str
    partitions: int
    replication_factor: int  # -1: three, or as many as there are live brokers
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False  # one of the brokers' own, under a name that nobody else can have


@frozen
class TopicCreated:
    name: str
    id: Id
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]
    warning: str | None  # what whoever asked may not have meant, for the log


@frozen
class MorePartitions:
    """A topic shall have `total` partitions; `assignment` may name the new ones' replicas."""

    topic: str
    total: int
    assignment: Sequence[Sequence[int]] | None = None


def create(image: Image, load: Load, wanted: NewTopic, new_id: Callable[[], Id]) -> Proposal[TopicCreated]:
    _check_name(image, wanted)
    for name, value in wanted.settings.items():
        check_topic_setting(name, value)
    places = _places(image, load, wanted)
    _check_room(image.load, places)
    topic_id = new_id()
    records: list[MetadataRecord] = [TopicAdded(name=wanted.name, topic_id=topic_id)]
    records += _added(image, topic_id, 0, places)
    records += [
        SettingChanged(resource=Resource.TOPIC, owner=wanted.name, name=name, value=value)
        for name, value in wanted.settings.items()
    ]
    created = TopicCreated(
        name=wanted.name,
        id=topic_id,
        partitions=len(places),
        replication_factor=len(places[0]),
        settings=wanted.settings,
        warning=_warning(wanted.name, places),
    )
    return Proposal(created, records)


def grow(image: Image, load: Load, topic: Topic, wanted: MorePartitions) -> Proposal[Topic]:
    now = len(topic.partitions)
    if topic.name in INTERNAL_TOPICS:
        raise InvalidTopicName(f"{topic.name} is one of the broker's own topics, and cannot grow: keys would move")
    if not now < wanted.total <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidPartitions(
            f"{topic.name} has {now} partitions; the new total must be from {now + 1} "
            f"to {PARTITIONS_PER_TOPIC_MAX}, not {wanted.total}"
        )
    brokers, more = _live(image), wanted.total - now
    if wanted.assignment is None:
        factor = factor_for(len(topic.partitions[0].replicas), len(brokers))
        places = place(more, factor, brokers, load, _own(topic))
    elif len(wanted.assignment) != more:
        raise InvalidReplicaAssignment(f"{more} new partitions, but replicas for {len(wanted.assignment)}")
    else:
        places = [_checked(brokers, replicas) for replicas in wanted.assignment]
    _check_room(image.load, places)
    return Proposal(topic, _added(image, topic.id, now, places))


def widen(image: Image, load: Load, topic: Topic, wanted: int) -> Proposal[None]:
    """Let its partitions have as many replicas as is usual, once there are so many brokers to hold them."""
    factor = REPLICAS_BY_DEFAULT_MAX if wanted == BY_DEFAULT else wanted
    brokers = _live(image)
    live = [broker.id for broker in brokers]
    narrow = [
        (index, one.replicas)
        for index, one in enumerate(topic.partitions)
        if len(one.replicas) < factor and all(held in live for held in one.replicas)
    ]
    if len(brokers) < factor or not narrow:
        return Proposal(None)
    places = placement.widen([held for _, held in narrow], factor, brokers, load, _own(topic))
    return Proposal(
        None,
        [
            PartitionWidened(topic_id=topic.id, partition=index, replicas=replicas)
            for (index, _), replicas in zip(narrow, places, strict=True)
        ],
    )


def _own(topic: Topic) -> Load:
    own = Load()
    for one in topic.partitions:
        own.add(one.replicas)
    return own


def _check_name(image: Image, wanted: NewTopic) -> None:
    name = wanted.name
    check_topic_name(name)
    if wanted.internal != (name in INTERNAL_TOPICS):
        raise InvalidTopicName(f"{name} is one of the broker's own topics")
    if (close := image.names_by_plain.get(plain(name))) is not None:
        raise too_close(name, close)


def too_close(name: str, other: str) -> TopicExists | InvalidTopicName:
    """Metric names cannot tell "." from "_", so Kafka allows only one of such a pair; its users expect the same."""
    if name == other:
        return TopicExists(f"topic {name} exists already")
    return InvalidTopicName(f"{name} is too close to topic {other}: they differ only in '.' and '_'")


def _places(image: Image, load: Load, wanted: NewTopic) -> list[ReplicaList]:
    brokers = _live(image)
    if wanted.assignment:
        if sorted(wanted.assignment) != list(range(len(wanted.assignment))):
            raise InvalidReplicaAssignment(f"{wanted.name}: partitions must be numbered from 0 without a gap")
        return [_checked(brokers, wanted.assignment[index]) for index in range(len(wanted.assignment))]
    if not 0 < wanted.partitions <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidPartitions(
            f"{wanted.name}: {wanted.partitions} partitions; it must be from 1 to {PARTITIONS_PER_TOPIC_MAX}"
        )
    factor = factor_for(wanted.replication_factor, len(brokers))
    return place(wanted.partitions, factor, brokers, load, Load())


def _live(image: Image) -> list[Broker]:
    return [image.brokers[one] for one in image.live]


def _checked(brokers: Sequence[Broker], replicas: Sequence[int]) -> ReplicaList:
    known = {int(broker.id): broker.id for broker in brokers}
    if not replicas or len(dict.fromkeys(replicas)) != len(replicas) or any(one not in known for one in replicas):
        raise InvalidReplicaAssignment(
            f"replicas {list(replicas)}: each must be one of the live brokers {list(known)}, once"
        )
    return tuple(known[one] for one in replicas)


def _check_room(load: Load, places: Sequence[ReplicaList]) -> None:
    after = load.copy()
    for one in places:
        after.add(one)
    for broker, held in after.replicas.items():
        if held > PARTITIONS_PER_BROKER_MAX and held > load.replicas.get(broker, 0):
            raise PolicyViolation(
                f"{len(places)} more partitions: broker {broker} would hold {held} replicas, and "
                f"{PARTITIONS_PER_BROKER_MAX} are the most for one; delete topics, or add a broker"
            )


def _added(image: Image, topic_id: Id, first: int, places: Sequence[ReplicaList]) -> list[MetadataRecord]:
    return [
        PartitionAdded(
            topic_id=topic_id,
            partition=first + step,
            replicas=replicas,
            directories=tuple(image.brokers[one].directory for one in replicas),
        )
        for step, replicas in enumerate(places)
    ]


def _warning(name: str, places: Sequence[ReplicaList]) -> str | None:
    if not any(len(replicas) == 2 for replicas in places):
        return None
    return (
        f"topic {name} has two replicas, and both are needed to write: it stops when either broker does; "
        "three replicas go on without one"
    )
