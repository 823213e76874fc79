"""DescribeCluster, DescribeLogDirs, DescribeTopicPartitions, FindCoordinator, InitProducerId."""

import asyncio
from pathlib import Path

from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tailrace.wire.messages.describe_log_dirs import DescribedLogDir, DescribeLogDirsRequest, TopicAsked
from tailrace.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tailrace.wire.messages.describe_topic_partitions import TopicAsked as TopicNamed
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker


@with_broker(broker_rack="r1")
async def test_every_version_describes_the_cluster(served: Served) -> None:
    node = served.node
    for version in versions(60):
        answer = await served.call(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        assert (answer.error_code, answer.cluster_id) == (0, node.meta.cluster_id)
        assert answer.controller_id == node.broker_id
        (broker,) = answer.brokers
        assert (broker.broker_id, broker.host, broker.port) == (node.broker_id, "127.0.0.1", node.kafka_port)
        assert (broker.rack, broker.is_fenced) == ("r1", False)
        assert answer.cluster_authorized_operations == 0b1_1111_1010_0000
    plain = await served.call(DescribeClusterRequest(), 2)
    assert plain.cluster_authorized_operations == -(2**31)


@with_broker()
async def test_only_brokers_can_be_asked_for_here(served: Served) -> None:
    for kind, error in ((2, Error.MISMATCHED_ENDPOINT_TYPE), (3, Error.UNSUPPORTED_ENDPOINT_TYPE)):
        answer = await served.call(DescribeClusterRequest(endpoint_type=kind), 2)
        assert (answer.error_code, answer.brokers) == (error, ())
        assert answer.error_message


@with_broker()
async def test_every_version_measures_the_disk(served: Served) -> None:
    await served.make_topic("t", 2)
    await served.produce("t", 1000, partition=1)
    size = served.node.hosted.find("t", 1).log.size_bytes
    assert size > 0
    for version in versions(35):
        answer = await served.call(DescribeLogDirsRequest(), version)
        (folder,) = answer.results
        assert (folder.error_code, folder.log_dir) == (0, served.node.settings.data_dir)
        (topic,) = folder.topics
        assert [(one.partition, one.size_bytes) for one in topic.partitions] == [(0, 0), (1, size)]
        if version >= 4:
            assert 0 < folder.usable_bytes < folder.total_bytes
        else:
            assert (folder.usable_bytes, folder.total_bytes) == (-1, -1)


@with_broker()
async def test_partitions_that_are_not_here_are_passed_over(served: Served) -> None:
    await served.make_topic("t", 2)
    asked = (TopicAsked(name="t", partitions=(1, 9, -1, 1)), TopicAsked(name="never", partitions=(0,)))
    answer = await served.call(DescribeLogDirsRequest(topics=asked), 5)
    folder: DescribedLogDir = answer.results[0]
    assert [(topic.name, [one.partition for one in topic.partitions]) for topic in folder.topics] == [("t", [1])]
    none = await served.call(DescribeLogDirsRequest(topics=()), 5)
    assert none.results[0].topics == ()


async def page(
    served: Served, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        topics=tuple(TopicNamed(name=name) for name in names),
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic=cursor[0], partition=cursor[1]),
    )
    answer: DescribeTopicPartitionsResponse = await served.call(request, 0)
    return answer


def parts(answer: DescribeTopicPartitionsResponse) -> list[tuple[str | None, list[int]]]:
    return [(topic.name, [one.partition for one in topic.partitions]) for topic in answer.topics]


@with_broker()
async def test_pages(served: Served) -> None:
    await served.make_topic("b", 3)
    await served.make_topic("a", 2)
    await served.make_topic("c", 1)
    whole = await page(served)
    assert (parts(whole), whole.next_cursor) == ([("a", [0, 1]), ("b", [0, 1, 2]), ("c", [0])], None)
    assert whole.topics[0].topic_authorized_operations == 0b1101_1111_1000
    first = await page(served, "b", "a", limit=3)
    assert (parts(first), first.next_cursor) == ([("a", [0, 1]), ("b", [0])], Cursor(topic="b", partition=1))
    second = await page(served, "b", "a", limit=3, cursor=("b", 1))
    assert (parts(second), second.next_cursor) == ([("b", [1, 2])], None)
    fitting = await page(served, limit=2)
    assert (parts(fitting), fitting.next_cursor) == ([("a", [0, 1])], Cursor(topic="b", partition=0))
    assert parts(await page(served, limit=0)) == [("a", [0])]
    assert parts(await page(served, cursor=("bb", 5))) == [("c", [0])]
    assert parts(await page(served, cursor=("c", 5))) == [("c", [])]


@with_broker()
async def test_pages_of_what_is_not_there(served: Served) -> None:
    await served.make_topic("t")
    answer = await page(served, "t", "never", "b@d")
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("b@d", Error.INVALID_TOPIC_EXCEPTION),
        ("never", Error.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0),
    ]
    (refused,) = (await page(served, "t", cursor=("t", -1))).topics
    assert refused.error_code == Error.INVALID_REQUEST


@with_broker()
async def test_every_version_finds_a_groups_coordinator(served: Served) -> None:
    here = (0, served.node.broker_id, "127.0.0.1", served.node.kafka_port)
    for version in versions(10):
        if version < 4:
            one = await served.call(FindCoordinatorRequest(key="g"), version)
            assert (one.error_code, one.node_id, one.host, one.port) == here
        else:
            many = await served.call(FindCoordinatorRequest(coordinator_keys=("g", "h")), version)
            assert [one.key for one in many.coordinators] == ["g", "h"]
            assert all((one.error_code, one.node_id, one.host, one.port) == here for one in many.coordinators)


@with_broker()
async def test_nobody_coordinates_share_groups_yet(served: Served) -> None:
    (one,) = (await served.call(FindCoordinatorRequest(coordinator_keys=("g",), key_type=2), 6)).coordinators
    assert (one.error_code, one.node_id, one.port) == (Error.COORDINATOR_NOT_AVAILABLE, -1, -1)
    for version, kind in ((3, 7), (3, 2)):
        refused = await served.call(FindCoordinatorRequest(key="g", key_type=kind), version)
        assert refused.error_code == Error.INVALID_REQUEST


def test_producer_ids_never_repeat(tmp_path: Path) -> None:
    async def take() -> list[int]:
        async with serving(tmp_path) as served:
            answers = [await served.call(InitProducerIdRequest(transaction_timeout_ms=0), v) for v in versions(22)]
            assert all((one.error_code, one.producer_epoch) == (0, 0) for one in answers)
            renewed = await served.call(
                InitProducerIdRequest(transaction_timeout_ms=0, producer_id=answers[0].producer_id, producer_epoch=3), 5
            )
            assert renewed.producer_epoch == 0
            return [one.producer_id for one in (*answers, renewed)]

    taken = asyncio.run(take()) + asyncio.run(take())
    assert len(dict.fromkeys(taken)) == len(taken) == 14
    assert min(taken) >= 0


@with_broker()
async def test_producer_ids_that_cannot_be_given(served: Served) -> None:
    for request, error in (
        (InitProducerIdRequest(transaction_timeout_ms=1, transactional_id="t"), Error.NOT_COORDINATOR),
        (InitProducerIdRequest(transaction_timeout_ms=0, transactional_id=""), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transaction_timeout_ms=0, producer_id=5), Error.INVALID_REQUEST),
        (InitProducerIdRequest(transaction_timeout_ms=0, producer_epoch=5), Error.INVALID_REQUEST),
    ):
        refused = await served.call(request, 5)
        assert (refused.error_code, refused.producer_id, refused.producer_epoch) == (error, -1, -1)
