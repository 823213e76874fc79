"""Admin requests and metadata: every broker of a cluster serves them alike, also while one broker is down."""

from typing import Any

from tailrace.model.ids import NO_ID
from tailrace.wire.errors import Error
from tailrace.wire.messages import alter_configs, create_topics, incremental_alter_configs
from tailrace.wire.messages.alter_configs import AlterConfigsRequest
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked
from tailrace.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from tailrace.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import heard, until
from tests.unit.doors.kafka.served import Served

TOPIC_KIND, BROKER_KIND = 2, 4


async def create(served: Served, name: str, replicas: int, **settings: str) -> Any:
    configs = tuple(
        create_topics.NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    )
    topic = NewTopic(name=name, num_partitions=1, replication_factor=replicas, configs=configs)
    return (await served.call(CreateTopicsRequest(topics=(topic,), timeout_ms=5000), 7)).topics[0]


@with_cluster(auto_create_topics_enable=False)
async def test_topics_begin_grow_and_end_at_any_broker(cluster: Clustered) -> None:
    for broker in cluster.ids:
        served, name = cluster[broker], f"t{broker}"
        made = await create(served, name, 3)
        assert (made.error_code, made.replication_factor) == (0, 3)
        assert (await create(served, name, 3)).error_code == Error.TOPIC_ALREADY_EXISTS
        grown = CreatePartitionsRequest(topics=(TopicToGrow(name=name, count=4),), timeout_ms=5000)
        assert (await served.call(grown, 3)).results[0].error_code == 0
        assert await leaders(cluster, name, 4) == 4
        gone = DeleteTopicsRequest(topics=(TopicToDelete(name=name),), timeout_ms=5000)
        assert (await served.call(gone, 6)).topics[0].error_code == 0
        await until(lambda: all(name not in cluster[one].node.hosted.image.topics for one in cluster.ids))  # noqa: B023


async def leaders(cluster: Clustered, name: str, partitions: int) -> int:
    """How many partitions have a leader, once every broker knows all partitions."""

    def led(broker: int) -> int:
        node = cluster[broker].node
        topic = node.hosted.image.topics.get(name)
        return 0 if topic is None else sum(state.leader >= 0 for state in node.control.leaders.of(topic))

    await until(lambda: all(led(one) == partitions for one in cluster.ids))
    return led(1)


@with_cluster(num_partitions=2)
async def test_a_missing_topic_is_made_by_asking_any_broker_for_it(cluster: Clustered) -> None:
    for broker in cluster.ids:
        wanted = MetadataRequest(topics=(TopicWanted(name=f"t{broker}"), TopicWanted(name="b@d")))
        answer = await cluster[broker].call(wanted, 13)
        made, refused = sorted(answer.topics, key=lambda topic: topic.name, reverse=True)
        assert (made.error_code, len(made.partitions), made.topic_id == NO_ID) == (0, 2, False)
        assert all(one.leader_id in cluster.ids and len(one.replicas) == 3 for one in made.partitions)
        assert refused.error_code == Error.INVALID_TOPIC_EXCEPTION


@with_cluster(2)
async def test_producer_ids_and_starts_are_given_at_any_broker(cluster: Clustered) -> None:
    await cluster.make_topic("t", (2, 1))
    taken = [await cluster[one].call(InitProducerIdRequest(transaction_timeout_ms=0), 5) for one in (1, 2, 1, 2)]
    assert len(dict.fromkeys(one.producer_id for one in taken)) == 4
    await cluster[2].produce("t", 1, 2, 3)
    trimmed = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=2),))
    answer = await cluster[2].call(DeleteRecordsRequest(topics=(trimmed,), timeout_ms=5000), 2)
    assert (answer.topics[0].partitions[0].error_code, answer.topics[0].partitions[0].low_watermark) == (0, 2)
    await until(lambda: cluster.replica(1, "t").log.start == 2)


async def shown(served: Served, broker: int | str, *names: str) -> Any:
    asked = ResourceAsked(resource_type=BROKER_KIND, resource_name=str(broker), config_names=names)
    return (await served.call(DescribeConfigsRequest(resources=(asked,)), 4)).results[0]


@with_cluster()
async def test_a_brokers_settings_are_changed_at_any_broker_and_shown_by_itself(cluster: Clustered) -> None:
    change = incremental_alter_configs.ConfigChange(name="log.retention.ms", config_operation=0, value="5000")
    for owner, asked in ((2, 2), (3, 2), (1, 3)):
        resource = incremental_alter_configs.ResourceToAlter(
            resource_type=BROKER_KIND, resource_name=str(owner), configs=(change,)
        )
        answer = await cluster[asked].call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        assert answer.resources[0].error_code == 0, answer.resources[0].error_message
        await until(lambda: str(owner) in cluster[owner].node.hosted.image.broker_settings)  # noqa: B023
        (value,) = (await shown(cluster[owner], owner, "log.retention.ms")).configs
        assert (value.value, value.config_source) == ("5000", 2)
    stranger = alter_configs.ResourceToAlter(resource_type=BROKER_KIND, resource_name="9", configs=())
    refused = (await cluster[2].call(AlterConfigsRequest(resources=(stranger,)), 2)).resources[0]
    assert refused.error_code == Error.INVALID_REQUEST
    assert "there is no broker '9', only 1, 2, 3" in refused.error_message
    other = await shown(cluster[2], 3)
    assert other.error_code == Error.INVALID_REQUEST
    assert "this is broker 2, not '3': a broker describes its own settings only" in other.error_message


@with_cluster()
async def test_topics_that_bear_no_failure_are_named_in_the_log(cluster: Clustered) -> None:
    for name, replicas, settings, warning in (
        ("fine", 3, {"min_insync_replicas": "3"}, None),
        ("two", 2, {}, "topic two has two replicas, and both are needed to write"),
        ("much", 3, {"min_insync_replicas": "4"}, "topic much has min.insync.replicas=4 but replication factor 3"),
    ):
        with heard() as lines:
            assert (await create(cluster[2], name, replicas, **settings)).error_code == 0
        assert [line for line in lines if warning is not None and warning in line] == lines, lines
        assert bool(lines) == (warning is not None)


@with_cluster(broker_session_timeout_ms=1500)
async def test_metadata_is_true_while_a_broker_is_down(cluster: Clustered) -> None:
    await cluster.make_topic("t", (1, 2, 3), (3, 2, 1))
    await cluster.make_topic("alone", (3,))
    await cluster[3].node.quorums.peers.close()
    await until(lambda: all(list(cluster[one].node.hosted.image.live) == [1, 2] for one in (1, 2)))
    await until(lambda: all(cluster.leader(one, "t", 1) in (1, 2) for one in (1, 2)))
    for broker in (1, 2):
        served = cluster[broker]
        answer = await served.call(MetadataRequest(topics=None), 13)
        assert [one.node_id for one in answer.brokers] == [1, 2]
        topics = {topic.name: topic.partitions for topic in answer.topics}
        for one in topics["t"]:
            assert (one.error_code, sorted(one.isr), one.offline_replicas) == (0, [1, 2], (3,))
            assert one.leader_id in (1, 2)
        (alone,) = topics["alone"]
        assert (alone.error_code, alone.leader_id) == (Error.LEADER_NOT_AVAILABLE, -1)
        assert (alone.isr, alone.offline_replicas) == ((), (3,))
        paged = await served.call(DescribeTopicPartitionsRequest(topics=(), response_partition_limit=2000), 0)
        for described, topic in zip(paged.topics, sorted(answer.topics, key=lambda one: one.name), strict=True):
            assert [state(one) for one in described.partitions] == [state(one) for one in topic.partitions]
        for fenced, expected in ((False, [(1, False), (2, False)]), (True, [(1, False), (2, False), (3, True)])):
            cluster_shown = await served.call(DescribeClusterRequest(include_fenced_brokers=fenced), 2)
            assert [(one.broker_id, one.is_fenced) for one in cluster_shown.brokers] == expected


def state(one: Any) -> tuple[Any, ...]:
    return one.partition, one.error_code, one.leader_id, one.leader_epoch, one.replicas, one.isr, one.offline_replicas
