"""DescribeLogDirs: sizes of partitions that this broker hosts, and the free space."""

from tailrace.wire.messages.describe_log_dirs import DescribedLogDir, DescribeLogDirsRequest
from tailrace.wire.messages.named_topics import TopicPartitions
from tests.unit.doors.kafka.served import Served, versions, with_broker


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
    asked = (TopicPartitions(name="t", partitions=(1, 9, -1, 1)), TopicPartitions(name="never", partitions=(0,)))
    answer = await served.call(DescribeLogDirsRequest(topics=asked), 5)
    folder: DescribedLogDir = answer.results[0]
    assert [(topic.name, [one.partition for one in topic.partitions]) for topic in folder.topics] == [("t", [1])]
    none = await served.call(DescribeLogDirsRequest(topics=()), 5)
    assert none.results[0].topics == ()
