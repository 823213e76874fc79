"""DescribeLogDirs: how much of the disk each partition takes, and how much is left."""

from collections.abc import Iterable, Iterator, Mapping

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import partitions_once
from tailrace.wire.messages.describe_log_dirs import (
    DescribedLogDir,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    PartitionSize,
    TopicSizes,
)


async def describe_log_dirs(request: DescribeLogDirsRequest, call: Call) -> DescribeLogDirsResponse:
    disk, folder = call.node.ports.disk, call.node.settings.data_dir
    return DescribeLogDirsResponse(
        results=(
            DescribedLogDir(
                log_dir=folder,
                topics=tuple(_sizes(request, call)),
                total_bytes=disk.total_bytes(folder),
                usable_bytes=disk.free_bytes(folder),
            ),
        )
    )


def _sizes(request: DescribeLogDirsRequest, call: Call) -> Iterator[TopicSizes]:
    """What is asked for and lives here; the rest is passed over, as it may live elsewhere."""
    wanted: Mapping[str, Iterable[int]]
    if request.topics is None:
        wanted = {name: range(len(topic.partitions)) for name, topic in call.node.hosted.image.topics.items()}
    else:
        wanted = partitions_once((asked.name, asked.partitions) for asked in request.topics)
    for name, numbers in wanted.items():
        partitions = call.node.hosted.by_number(name)
        sizes = tuple(
            PartitionSize(partition=number, size_bytes=partition.log.size_bytes)
            for number in numbers
            if 0 <= number < len(partitions) and (partition := partitions[number]) is not None
        )
        if sizes:
            yield TopicSizes(name=name, partitions=sizes)
