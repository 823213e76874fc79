"""Description of a group: its members, committed offsets and lag."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, answer, asking
from tailrace.cli.failure import NotFound

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient


class MemberFacts(TypedDict):
    member: str
    client: str
    host: str
    partitions: list[str]  # each as "topic-partition"


class OffsetFacts(TypedDict):
    topic: str
    partition: int
    committed: int | None  # None: assigned to a member, but nothing committed yet
    end: int | None  # None: the topic does not exist any longer
    lag: int | None  # None: `committed` or `end` is None
    owner: str | None  # the member that it is assigned to


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
        raise NotFound(f"there is no group {group}.\n`tailrace group list` lists the groups.")
    members = [
        MemberFacts(
            member=one.member_id,
            client=one.client_id,
            host=one.host,
            partitions=[f"{topic}-{number}" for topic, number in sorted(map(_key, one.assignment.topic_partitions))],
        )
        for one in found.members
    ]
    owners = {_key(part): one.member_id for one in found.members for part in one.assignment.topic_partitions}
    return GroupFacts(
        group=group,
        type=found.type.name.lower(),
        state=words(found.state.name),
        assignor=found.partition_assignor,
        coordinator=found.coordinator.id if found.coordinator is not None else -1,
        members=members,
        offsets=_lags(client, committed(client, group, bootstrap), owners, bootstrap),
    )


def _key(part: "TopicPartition") -> tuple[str, int]:
    return part.topic, part.partition


def words(name: str) -> str:
    """The name of a state in plain words: PREPARING_REBALANCING is "preparing rebalancing"."""
    return name.lower().replace("_", " ")


def committed(client: "AdminClient", group: str, bootstrap: str) -> "list[TopicPartition]":
    """The committed offsets of a group, sorted by topic and partition."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    what = f"get the committed offsets of group {group}"
    with asking(bootstrap, what):
        wanted = [ConsumerGroupTopicPartitions(group)]
        (future,) = client.list_consumer_group_offsets(wanted, request_timeout=ANSWER_TIMEOUT_S).values()
    found = answer(future, bootstrap, what).topic_partitions or []
    return sorted((one for one in found if one.offset >= 0), key=lambda one: (one.topic, one.partition))


def _lags(
    client: "AdminClient", read: "Sequence[TopicPartition]", owners: Mapping[tuple[str, int], str], bootstrap: str
) -> list[OffsetFacts]:
    """The lag of every partition that has a committed offset or is assigned to a member."""
    from confluent_kafka import KafkaException, TopicPartition

    offsets: dict[tuple[str, int], int | None] = dict.fromkeys(owners) | {_key(one): one.offset for one in read}
    partitions = [TopicPartition(*key) for key in sorted(offsets)]
    ends: dict[tuple[str, int], int] = {}
    for one, future in _list_offsets(client, partitions, spec("latest"), bootstrap).items():
        try:
            ends[_key(one)] = future.result(2 * ANSWER_TIMEOUT_S).offset
        except KafkaException:
            continue  # the topic was deleted
    return [_lag(key, offset, ends.get(key), owners.get(key)) for key, offset in sorted(offsets.items())]


def _lag(key: tuple[str, int], offset: int | None, end: int | None, owner: str | None) -> OffsetFacts:
    lag = None if offset is None or end is None else max(0, end - offset)
    return OffsetFacts(topic=key[0], partition=key[1], committed=offset, end=end, lag=lag, owner=owner)


def spec(name: str, *timestamp_ms: int) -> Any:
    """An OffsetSpec: `earliest`, `latest`, or `for_timestamp` with a time. The client's class has no types."""
    from confluent_kafka.admin import OffsetSpec

    return getattr(OffsetSpec, name)(*timestamp_ms)


def _list_offsets(
    client: "AdminClient", wanted: "Sequence[TopicPartition]", wanted_at: Any, bootstrap: str
) -> "dict[TopicPartition, Any]":
    from confluent_kafka import TopicPartition

    if not wanted:
        return {}
    with asking(bootstrap, "look up offsets"):
        specs = {TopicPartition(one.topic, one.partition): wanted_at for one in wanted}
        return dict(client.list_offsets(specs, request_timeout=ANSWER_TIMEOUT_S))


def offsets_at(
    client: "AdminClient", wanted: "Sequence[TopicPartition]", wanted_at: Any, bootstrap: str
) -> dict[tuple[str, int], int]:
    """The offset of each partition at the start, at the end or at a time; -1 if no record is at or after that time."""
    futures = _list_offsets(client, wanted, wanted_at, bootstrap)
    return {
        (one.topic, one.partition): answer(future, bootstrap, f"look up offsets of {one.topic}").offset
        for one, future in futures.items()
    }
