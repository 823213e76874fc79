"""Description of a topic: its partitions, offsets and settings, from several requests to the broker."""

from typing import TYPE_CHECKING, Any, Final, TypedDict

from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, answer, asking

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

SOURCE_TOPIC: Final = 1  # the source, in DescribeConfigs, of a setting that is set on the topic itself


class PartitionFacts(TypedDict):
    partition: int
    leader: int | None
    replicas: list[int]
    in_sync: list[int]
    first_offset: int | None
    end_offset: int | None


class TopicFacts(TypedDict):
    name: str
    id: str
    internal: bool
    partitions: list[PartitionFacts]
    settings: dict[str, str]


def topic_facts(client: "AdminClient", name: str, bootstrap: str, *, all_settings: bool) -> TopicFacts:
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import OffsetSpec

    what = f"describe topic {name}"
    with asking(bootstrap, what):
        answers = client.describe_topics(TopicCollection([name]), request_timeout=ANSWER_TIMEOUT_S)
    topic = answer(answers[name], bootstrap, what)
    numbers = [one.id for one in topic.partitions]
    first = _offsets(client, name, numbers, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    end = _offsets(client, name, numbers, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    return {
        "name": name,
        "id": str(topic.topic_id).translate({ord("+"): "-", ord("/"): "_"}),  # the form that Kafka's tools print
        "internal": bool(topic.is_internal),
        "partitions": [
            {
                "partition": one.id,
                "leader": one.leader.id if one.leader is not None else None,
                "replicas": [node.id for node in one.replicas],
                "in_sync": [node.id for node in one.isr],
                "first_offset": first.get(one.id),
                "end_offset": end.get(one.id),
            }
            for one in topic.partitions
        ],
        "settings": _settings(client, name, bootstrap, all_settings),
    }


def _offsets(client: "AdminClient", name: str, numbers: list[int], spec: Any) -> dict[int, int]:
    """The first or end offset of each partition, without those that have no leader."""
    from confluent_kafka import TopicPartition

    wanted = {TopicPartition(name, number): spec for number in numbers}
    futures = client.list_offsets(wanted, request_timeout=ANSWER_TIMEOUT_S)
    return {
        one.partition: future.result().offset
        for one, future in futures.items()
        if future.exception(2 * ANSWER_TIMEOUT_S) is None
    }


def _settings(client: "AdminClient", name: str, bootstrap: str, all_settings: bool) -> dict[str, str]:
    from confluent_kafka.admin import ConfigResource, ResourceType

    what = f"read the settings of {name}"
    resource = ConfigResource(ResourceType.TOPIC, name)
    with asking(bootstrap, what):
        (future,) = client.describe_configs([resource], request_timeout=ANSWER_TIMEOUT_S).values()
    entries = answer(future, bootstrap, what)
    return {key: one.value for key, one in sorted(entries.items()) if all_settings or one.source == SOURCE_TOPIC}
