"""CreatePartitions: more partitions for a topic, with and without a replica assignment."""

from tailrace.wire.errors import Error
from tailrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    GrownTopic,
    NewPartition,
    TopicToGrow,
)
from tests.unit.doors.kafka.served import Served, versions, with_broker


async def grow(served: Served, *topics: TopicToGrow, version: int = 3, validate_only: bool = False) -> list[GrownTopic]:
    answer = await served.call(CreatePartitionsRequest(topics=topics, validate_only=validate_only), version)
    return list(answer.results)


@with_broker()
async def test_every_version_grows_a_topic(served: Served) -> None:
    await served.make_topic("t")
    for version in versions(37):
        count = version + 2
        (grown,) = await grow(served, TopicToGrow(name="t", count=count), version=version)
        assert (grown.name, grown.error_code) == ("t", 0)
        assert await served.produce("t", 1000, partition=count - 1) == 0


@with_broker()
async def test_growing_with_named_replicas(served: Served) -> None:
    await served.make_topic("t")
    me = served.node.broker_id
    for replicas, count, error in (
        ([(me,)], 3, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(me + 1,)], 2, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(me, me)], 2, Error.INVALID_REPLICA_ASSIGNMENT),
        ([(me,), (me,)], 3, 0),
    ):
        assignments = tuple(NewPartition(broker_ids=ids) for ids in replicas)
        (grown,) = await grow(served, TopicToGrow(name="t", count=count, assignments=assignments))
        assert grown.error_code == error
    assert len(served.node.hosted.of_topic("t")) == 3


@with_broker()
async def test_growing_that_cannot_be(served: Served) -> None:
    await served.make_topic("t", 2)
    await served.make_topic("u")
    (valid,) = await grow(served, TopicToGrow(name="t", count=4), validate_only=True)
    assert valid.error_code == 0
    for name, count, error in (
        ("t", 2, Error.INVALID_PARTITIONS),
        ("t", 1, Error.INVALID_PARTITIONS),
        ("t", -1, Error.INVALID_PARTITIONS),
        ("t", 10_001, Error.INVALID_PARTITIONS),
        ("never", 3, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        (refused,) = await grow(served, TopicToGrow(name=name, count=count))
        assert (refused.error_code, bool(refused.error_message)) == (error, True)
    twice = await grow(served, TopicToGrow(name="t", count=3), TopicToGrow(name="t", count=4))
    assert [one.error_code for one in twice] == [Error.INVALID_REQUEST]
    many = await grow(
        served, TopicToGrow(name="t", count=9_000), TopicToGrow(name="u", count=9_000), validate_only=True
    )
    assert [one.error_code for one in many] == [0, Error.POLICY_VIOLATION]
    assert len(served.node.hosted.of_topic("t")) == 2
