"""DescribeLogDirs: the size of each partition on disk, and the free space."""

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
    disk = call.services.admin.disk(call.caller)
    return DescribeLogDirsResponse(
        results=(
            DescribedLogDir(
                log_dir=disk.folder,
                topics=tuple(_sizes(request, call)),
                total_bytes=disk.total_bytes,
                usable_bytes=disk.free_bytes,
            ),
        )
    )


def _sizes(request: DescribeLogDirsRequest, call: Call) -> Iterator[TopicSizes]:
    """The requested partitions that this broker hosts; the others are left out, as in Kafka."""
    wanted: Mapping[str, Iterable[int]]
    if request.topics is None:
        topics = call.services.topics.all(call.caller)
        wanted = {name: range(len(topic.partitions)) for name, topic in topics.items()}
    else:
        wanted = partitions_once((asked.name, asked.partitions) for asked in request.topics)
    for name, numbers in wanted.items():
        sizes = tuple(
            PartitionSize(partition=number, size_bytes=size_bytes, damage=damage)
            for number, size_bytes, damage in call.services.admin.partition_sizes(call.caller, name, numbers)
        )
        if sizes:
            yield TopicSizes(name=name, partitions=sizes)
