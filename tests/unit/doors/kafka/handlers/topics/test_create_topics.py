"""CreateTopics: defaults, assignments, settings, validation, and error codes."""

from typing import Any

from tailrace.model.ids import NO_ID
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import (
    CreateTopicsRequest,
    NewTopic,
    NewTopicConfig,
    ReplicaAssignment,
)
from tests.unit.doors.kafka.served import Served, versions, with_broker


def topic(name: str, partitions: int = 1, replicas: int = 1, **given: Any) -> NewTopic:
    return NewTopic(name=name, num_partitions=partitions, replication_factor=replicas, **given)


async def create(served: Served, *topics: NewTopic, version: int = 7, validate_only: bool = False) -> Any:
    answer = await served.call(CreateTopicsRequest(topics=topics, validate_only=validate_only), version)
    return {one.name: one for one in answer.topics}


async def refusal(served: Served, wanted: NewTopic) -> Error:
    answer = (await create(served, wanted))[wanted.name]
    assert answer.error_message
    assert wanted.name not in served.node.hosted.image.topics or answer.error_code == Error.TOPIC_ALREADY_EXISTS
    return Error(answer.error_code)


@with_broker()
async def test_every_version_creates(served: Served) -> None:
    for version in versions(19):
        answer = (await create(served, topic(f"t{version}", 2), version=version))[f"t{version}"]
        made = served.node.hosted.image.topics[f"t{version}"]
        assert (answer.error_code, len(made.partitions)) == (0, 2)
        assert all(partition.leads for partition in served.node.hosted.of_topic(made.id))
        assert answer.topic_id == (made.id if version >= 7 else NO_ID)
        assert (answer.num_partitions, answer.replication_factor) == ((2, 1) if version >= 5 else (-1, -1))


@with_broker(num_partitions=3)
async def test_minus_one_leaves_the_numbers_to_the_broker(served: Served) -> None:
    answer = (await create(served, topic("t", -1, -1)))["t"]
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 3, 1)


@with_broker()
async def test_settings_are_kept_and_shown_with_their_source(served: Served) -> None:
    configs = (NewTopicConfig(name="retention.ms", value="5000"),)
    answer = (await create(served, topic("t", configs=configs), version=5))["t"]
    shown = {one.name: (one.value, one.config_source) for one in answer.configs}
    assert shown["retention.ms"] == ("5000", 1)
    assert shown["cleanup.policy"] == ("delete", 5)
    assert served.node.hosted.find("t", 0).log.settings.retention_ms == 5000


@with_broker()
async def test_validate_only_says_the_same_and_makes_nothing(served: Served) -> None:
    answers = await create(served, topic("good", 4), topic("bad name"), validate_only=True)
    assert (answers["good"].error_code, answers["good"].num_partitions) == (0, 4)
    assert answers["good"].topic_id == NO_ID
    assert answers["bad name"].error_code == Error.INVALID_TOPIC_EXCEPTION
    assert served.node.hosted.image.topics == {}


@with_broker()
async def test_a_topic_named_twice_is_not_made(served: Served) -> None:
    request = CreateTopicsRequest(topics=(topic("twice"), topic("once"), topic("twice")))
    answer = await served.call(request, 7)
    assert [(one.name, one.error_code) for one in answer.topics] == [("once", 0), ("twice", Error.INVALID_REQUEST)]
    assert list(served.node.hosted.image.topics) == ["once"]


@with_broker()
async def test_named_replicas(served: Served) -> None:
    me = served.node.broker_id
    places = (ReplicaAssignment(partition=1, broker_ids=(me,)), ReplicaAssignment(partition=0, broker_ids=(me,)))
    answer = (await create(served, topic("t", -1, -1, assignments=places)))["t"]
    assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (0, 2, 1)


@with_broker()
async def test_named_replicas_that_cannot_be(served: Served) -> None:
    me = served.node.broker_id
    bad = Error.INVALID_REPLICA_ASSIGNMENT
    for error, places in (
        (bad, [(0, (me + 1,))]),
        (bad, [(0, (me, me))]),
        (bad, [(0, ())]),
        (bad, [(1, (me,))]),
        (bad, [(0, (me,)), (0, (me,))]),
    ):
        assignments = tuple(ReplicaAssignment(partition=partition, broker_ids=ids) for partition, ids in places)
        assert await refusal(served, topic("t", -1, -1, assignments=assignments)) == error
    assignments = (ReplicaAssignment(partition=0, broker_ids=(me,)),)
    assert await refusal(served, topic("t", 1, -1, assignments=assignments)) == Error.INVALID_REQUEST
    assert await refusal(served, topic("t", -1, 1, assignments=assignments)) == Error.INVALID_REQUEST


@with_broker()
async def test_each_fault_has_its_code(served: Served) -> None:
    await served.make_topic("there")
    await served.make_topic("dot.ted")
    config = NewTopicConfig
    for wanted, error in (
        (topic("there"), Error.TOPIC_ALREADY_EXISTS),
        (topic(""), Error.INVALID_TOPIC_EXCEPTION),
        (topic("x" * 250), Error.INVALID_TOPIC_EXCEPTION),
        (topic("dot_ted"), Error.INVALID_TOPIC_EXCEPTION),
        (topic("__consumer_offsets"), Error.INVALID_TOPIC_EXCEPTION),
        (topic("t", 0), Error.INVALID_PARTITIONS),
        (topic("t", -2), Error.INVALID_PARTITIONS),
        (topic("t", 1, 0), Error.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -2), Error.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 2), Error.INVALID_REPLICATION_FACTOR),
        (topic("t", configs=(config(name="no.such", value="1"),)), Error.INVALID_CONFIG),
        (topic("t", configs=(config(name="retention.ms", value=None),)), Error.INVALID_CONFIG),
        (topic("t", configs=(config(name="retention.ms", value="x"),)), Error.INVALID_CONFIG),
        (topic("t", configs=(config(name="cleanup.policy", value="shred"),)), Error.INVALID_CONFIG),
        (topic("t", configs=(config(name="flush.ms", value="1"),) * 2), Error.INVALID_CONFIG),
    ):
        assert await refusal(served, wanted) == error, wanted


@with_broker()
async def test_too_many_partitions_at_once_are_refused_as_a_whole(served: Served) -> None:
    answers = await create(served, topic("a", 6000), topic("b", 6000))
    assert [one.error_code for one in answers.values()] == [Error.POLICY_VIOLATION] * 2
    assert served.node.hosted.image.topics == {}
