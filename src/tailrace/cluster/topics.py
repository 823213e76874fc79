"""Creating topics, and adding partitions and replicas to them: checks, placement, and the resulting records.

New partitions are placed by `load`: the replicas on each broker, including those proposed but not yet in the image.
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
from tailrace.model.topics import INTERNAL_TOPICS, check_topic_name, check_topic_relations, check_topic_setting


@frozen
class NewTopic:
    """A topic to be created. If `assignment` has the replicas of each partition, the two numbers are -1."""

    name: str
    partitions: int
    replication_factor: int  # -1: three, or as many as there are live brokers
    assignment: Mapping[int, Sequence[int]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False  # one of the internal topics, whose names clients cannot use


@frozen
class TopicCreated:
    name: str
    id: Id
    partitions: int
    replication_factor: int
    settings: Mapping[str, str]
    warning: str | None  # for the log: a choice that the user may not have intended


@frozen
class MorePartitions:
    """The topic shall have `total` partitions; `assignment` may give the replicas of the new ones."""

    topic: str
    total: int
    assignment: Sequence[Sequence[int]] | None = None


def create(image: Image, load: Load, wanted: NewTopic, new_id: Callable[[], Id]) -> Proposal[TopicCreated]:
    _check_name(image, wanted)
    for name, value in wanted.settings.items():
        check_topic_setting(name, value)
    check_topic_relations(wanted.settings)
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
        raise InvalidTopicName(f"{topic.name} is an internal topic; adding partitions to it would move its keys")
    if not now < wanted.total <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidPartitions(
            f"The topic {topic.name} currently has {now} partition(s); the new total must be from {now + 1} "
            f"to {PARTITIONS_PER_TOPIC_MAX}, not {wanted.total}"
        )
    brokers, more = _live(image), wanted.total - now
    if wanted.assignment is None:
        factor = factor_for(len(topic.partitions[0].replicas), len(brokers))
        places = place(more, factor, brokers, load, _own(topic))
    elif len(wanted.assignment) != more:
        raise InvalidReplicaAssignment(f"{more} new partitions, but {len(wanted.assignment)} replica assignments")
    else:
        places = [_checked(brokers, replicas) for replicas in wanted.assignment]
    _check_room(image.load, places)
    return Proposal(topic, _added(image, topic.id, now, places))


def widen(image: Image, load: Load, topic: Topic, wanted: int) -> Proposal[None]:
    """Add replicas to partitions that have fewer than `wanted`, once there are enough live brokers."""
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
        raise InvalidTopicName(f"{name} is an internal topic")
    if (close := image.names_by_plain.get(plain(name))) is not None:
        raise too_close(name, close)


def too_close(name: str, other: str) -> TopicExists | InvalidTopicName:
    """Metric names have "_" in place of ".", so Kafka refuses topics whose names differ only in that; so do we."""
    if name == other:
        return TopicExists(f"Topic '{name}' already exists.")
    return InvalidTopicName(f"Topic '{name}' collides with existing topic: {other}; they differ only in '.' and '_'")


def _places(image: Image, load: Load, wanted: NewTopic) -> list[ReplicaList]:
    brokers = _live(image)
    if wanted.assignment:
        if sorted(wanted.assignment) != list(range(len(wanted.assignment))):
            raise InvalidReplicaAssignment(f"{wanted.name}: partitions must be a consecutive 0-based integer sequence")
        return [_checked(brokers, wanted.assignment[index]) for index in range(len(wanted.assignment))]
    if not 0 < wanted.partitions <= PARTITIONS_PER_TOPIC_MAX:
        raise InvalidPartitions(
            f"{wanted.name}: number of partitions {wanted.partitions}; it must be from 1 to {PARTITIONS_PER_TOPIC_MAX}"
        )
    factor = factor_for(wanted.replication_factor, len(brokers))
    return place(wanted.partitions, factor, brokers, load, Load())


def _live(image: Image) -> list[Broker]:
    return [image.brokers[one] for one in image.live]


def _checked(brokers: Sequence[Broker], replicas: Sequence[int]) -> ReplicaList:
    known = {int(broker.id): broker.id for broker in brokers}
    if not replicas or len(dict.fromkeys(replicas)) != len(replicas) or any(one not in known for one in replicas):
        raise InvalidReplicaAssignment(
            f"invalid replicas {list(replicas)}: they must be distinct, and among the live brokers {list(known)}"
        )
    return tuple(known[one] for one in replicas)


def _check_room(load: Load, places: Sequence[ReplicaList]) -> None:
    after = load.copy()
    for one in places:
        after.add(one)
    for broker, held in after.replicas.items():
        if held > PARTITIONS_PER_BROKER_MAX and held > load.replicas.get(broker, 0):
            raise PolicyViolation(
                f"with {len(places)} more partitions, broker {broker} would hold {held} replicas, more than the limit "
                f"of {PARTITIONS_PER_BROKER_MAX}; delete topics, or add a broker"
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
        f"topic {name} has two replicas, and both are needed to write: it is unavailable when either broker fails; "
        "three replicas tolerate the failure of one"
    )
