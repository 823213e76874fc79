"""What there is to know about a group: its members, and how far it has read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, answer, asking
from tailrace.cli.failure import NotThere

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient


class MemberFacts(TypedDict):
    member: str
    client: str
    host: str
    partitions: list[str]  # topic-number


class OffsetFacts(TypedDict):
    topic: str
    partition: int
    committed: int | None  # None: nothing is, though a member reads it
    end: int | None  # None: the topic is gone
    lag: int | None  # None: one of the two is not known
    owner: str | None  # the member that reads it


class GroupFacts(TypedDict):
    group: str
    type: str  # classic, or consumer (KIP-848)
    state: str
    assignor: str
    coordinator: int
    members: list[MemberFacts]
    offsets: list[OffsetFacts]


def group_facts(client: "AdminClient", group: str, bootstrap: str) -> GroupFacts:
    with asking(bootstrap, f"describe group {group}"):
        (future,) = client.describe_consumer_groups([group], request_timeout=ANSWER_TIMEOUT_S).values()
    found = answer(future, bootstrap, f"describe group {group}")
    if found.state.name == "DEAD":
        raise NotThere(f"there is no group {group}.\n`tailrace group list` shows what is there.")
    members = [
        MemberFacts(
            member=one.member_id,
            client=one.client_id,
            host=one.host,
            partitions=[f"{topic}-{number}" for topic, number in sorted(map(_place, one.assignment.topic_partitions))],
        )
        for one in found.members
    ]
    owners = {_place(part): one.member_id for one in found.members for part in one.assignment.topic_partitions}
    return GroupFacts(
        group=group,
        type=found.type.name.lower(),
        state=words(found.state.name),
        assignor=found.partition_assignor,
        coordinator=found.coordinator.id if found.coordinator is not None else -1,
        members=members,
        offsets=_lags(client, committed(client, group, bootstrap), owners, bootstrap),
    )


def _place(part: "TopicPartition") -> tuple[str, int]:
    return part.topic, part.partition


def words(name: str) -> str:
    """A state, as people read it."""
    return name.lower().replace("_", " ")


def committed(client: "AdminClient", group: str, bootstrap: str) -> "list[TopicPartition]":
    """How far a group has read, as far as it has read anything."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    with asking(bootstrap, f"ask what group {group} has read"):
        wanted = [ConsumerGroupTopicPartitions(group)]
        (future,) = client.list_consumer_group_offsets(wanted, request_timeout=ANSWER_TIMEOUT_S).values()
    found = answer(future, bootstrap, f"ask what group {group} has read").topic_partitions or []
    return sorted((one for one in found if one.offset >= 0), key=lambda one: (one.topic, one.partition))


def _lags(
    client: "AdminClient", read: "Sequence[TopicPartition]", owners: Mapping[tuple[str, int], str], bootstrap: str
) -> list[OffsetFacts]:
    """Of what a group has read, and of what its members read."""
    from confluent_kafka import KafkaException, TopicPartition

    offsets: dict[tuple[str, int], int | None] = dict.fromkeys(owners) | {_place(one): one.offset for one in read}
    places = [TopicPartition(*place) for place in sorted(offsets)]
    ends: dict[tuple[str, int], int] = {}
    for one, future in _asked(client, places, spec("latest"), bootstrap).items():
        try:
            ends[_place(one)] = future.result(2 * ANSWER_TIMEOUT_S).offset
        except KafkaException:
            continue  # the topic is gone
    return [_lag(place, offset, ends.get(place), owners.get(place)) for place, offset in sorted(offsets.items())]


def _lag(place: tuple[str, int], offset: int | None, end: int | None, owner: str | None) -> OffsetFacts:
    lag = None if offset is None or end is None else max(0, end - offset)
    return OffsetFacts(topic=place[0], partition=place[1], committed=offset, end=end, lag=lag, owner=owner)


def spec(name: str, *timestamp_ms: int) -> Any:
    """What to look up: `earliest`, `latest`, or `for_timestamp` with a time. The client has no types for it."""
    from confluent_kafka.admin import OffsetSpec

    return getattr(OffsetSpec, name)(*timestamp_ms)


def _asked(
    client: "AdminClient", wanted: "Sequence[TopicPartition]", wanted_at: Any, bootstrap: str
) -> "dict[TopicPartition, Any]":
    from confluent_kafka import TopicPartition

    if not wanted:
        return {}
    with asking(bootstrap, "look up offsets"):
        places = {TopicPartition(one.topic, one.partition): wanted_at for one in wanted}
        return dict(client.list_offsets(places, request_timeout=ANSWER_TIMEOUT_S))


def offsets_at(
    client: "AdminClient", wanted: "Sequence[TopicPartition]", wanted_at: Any, bootstrap: str
) -> dict[tuple[str, int], int]:
    """Where partitions are at the beginning, at the end or at a time; -1: nothing is so late."""
    asked = _asked(client, wanted, wanted_at, bootstrap)
    return {
        (one.topic, one.partition): answer(future, bootstrap, f"look up offsets of {one.topic}").offset
        for one, future in asked.items()
    }
