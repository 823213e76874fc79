"""`tailrace.v1.Topics`, `Groups` and `Cluster`."""

import pytest

from tailrace.client.faults import Refused
from tailrace.client.offsets import commit_offsets
from tailrace.client.producer import Producer
from tailrace.doors.grpc.statuses import BadField, Code, status_of
from tailrace.doors.grpc.v1.groups import Brokers, Groups
from tailrace.doors.grpc.v1.topics import Topics
from tailrace.model.ids import PartitionName
from tests.unit.doors.grpc.served import LOCAL, Served, serving
from tests.unit.doors.kafka.served import given


@given(serving)
async def test_the_life_of_a_topic(served: Served) -> None:
    v1, topics = served.schema.v1, Topics(served.upstream, served.schema)
    wanted = v1.CreateTopicRequest(name="orders", partitions=2, settings={"retention.ms": "1000"})
    await topics.create(wanted, LOCAL)
    with pytest.raises(Refused) as caught:
        await topics.create(wanted, LOCAL)
    assert status_of(caught.value).code is Code.ALREADY_EXISTS
    await topics.add_partitions(v1.AddPartitionsRequest(name="orders", partitions=4), LOCAL)
    change = v1.ChangeSettingsRequest.Change
    changes = [change(name="retention.ms"), change(name="cleanup.policy", value="compact")]
    await topics.change_settings(v1.ChangeSettingsRequest(name="orders", changes=changes), LOCAL)
    topic = (await topics.get(v1.GetTopicRequest(name="orders"), LOCAL)).topic
    assert [(one.partition, one.leader, list(one.replicas)) for one in topic.partitions] == [
        (number, 1, [1]) for number in range(4)
    ]
    assert (topic.settings["cleanup.policy"], topic.settings["retention.ms"]) == ("compact", "604800000")
    assert [one.name for one in (await topics.list(v1.ListTopicsRequest(), LOCAL)).topics] == ["orders"]
    await topics.delete(v1.DeleteTopicRequest(name="orders"), LOCAL)
    with pytest.raises(Refused) as caught:
        await topics.delete(v1.DeleteTopicRequest(name="orders"), LOCAL)
    assert status_of(caught.value).code is Code.NOT_FOUND


@given(serving)
async def test_what_cannot_be_a_topic_is_named(served: Served) -> None:
    v1, topics = served.schema.v1, Topics(served.upstream, served.schema)
    for request, field in [
        (v1.CreateTopicRequest(), "name"),
        (v1.CreateTopicRequest(name="orders", partitions=-1), "partitions"),
        (v1.CreateTopicRequest(name="orders", replicas=-1), "replicas"),
        (v1.CreateTopicRequest(name="orders", replicas=40_000), "replicas"),
    ]:
        with pytest.raises(BadField) as caught:
            await topics.create(request, LOCAL)
        assert caught.value.field == field
    with pytest.raises(Refused) as refused:
        await topics.create(v1.CreateTopicRequest(name="orders", settings={"no.such": "x"}), LOCAL)
    assert status_of(refused.value).code is Code.INVALID_ARGUMENT


@given(serving)
async def test_groups_and_their_offsets(served: Served) -> None:
    v1, groups = served.schema.v1, Groups(served.upstream, served.schema)
    await served.make_topic("orders")
    async with Producer(served.upstream.cluster) as producer:
        for _ in range(5):
            written = await producer.send("orders", b"x")
        await written
    await commit_offsets(served.upstream.cluster, "g", {PartitionName("orders", 0): 2})
    (found,) = (await groups.get_offsets(v1.GetOffsetsRequest(group="g"), LOCAL)).offsets
    assert (found.position.offset, found.lag) == (2, 3)
    position = v1.Position(topic="orders", partition=0, offset=5)
    await groups.set_offsets(v1.SetOffsetsRequest(group="g", offsets=[position]), LOCAL)
    (found,) = (await groups.get_offsets(v1.GetOffsetsRequest(group="g"), LOCAL)).offsets
    assert (found.position.offset, found.lag) == (5, 0)
    assert [one.name for one in (await groups.list(v1.ListGroupsRequest(), LOCAL)).groups] == ["g"]
    await groups.delete(v1.DeleteGroupRequest(group="g"), LOCAL)
    assert not (await groups.list(v1.ListGroupsRequest(), LOCAL)).groups


@given(serving)
async def test_the_cluster_is_described(served: Served) -> None:
    v1 = served.schema.v1
    found = await Brokers(served.upstream, served.schema).describe(v1.DescribeClusterRequest(), LOCAL)
    assert found.cluster_id
    assert [(one.id, one.grpc) for one in found.brokers] == [(1, "")]
    assert found.brokers[0].kafka.startswith("127.0.0.1:")
