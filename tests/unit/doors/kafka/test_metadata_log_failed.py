"""If the metadata log fails, every change is refused in its own response, and reads are still served."""

from typing import Any

from tailrace.model.faults import StorageFailed
from tailrace.wire.errors import Error
from tailrace.wire.messages import alter_configs
from tailrace.wire.messages.alter_configs import AlterConfigsRequest
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, TopicToGrow
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest
from tailrace.wire.messages.metadata import MetadataRequest, TopicWanted
from tests.unit.doors.kafka.served import Served, with_broker

setting = alter_configs.NewConfig(name="flush.ms", value="1")
changed = alter_configs.ResourceToAlter(resource_type=2, resource_name="t", configs=(setting,))
trimmed = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=1),))


@with_broker()
async def test_changes_are_refused_and_reads_go_on(served: Served) -> None:
    await served.make_topic("t")
    await served.produce("t", 1000)
    served.node.control.role.active.partition.resign(StorageFailed("its disk is gone"))

    async def error(request: Any, version: int, *path: str) -> int:
        found = await served.call(request, version)
        for step in path:
            found = getattr(found, step)[0]
        code: int = found.error_code
        return code

    refused = Error.NOT_CONTROLLER
    topic = NewTopic(name="new", num_partitions=1, replication_factor=1)
    assert await error(CreateTopicsRequest(topics=(topic,)), 7, "topics") == refused
    assert await error(DeleteTopicsRequest(topics=(TopicToDelete(name="t"),)), 6, "topics") == refused
    assert await error(CreatePartitionsRequest(topics=(TopicToGrow(name="t", count=2),)), 3, "results") == refused
    assert await error(AlterConfigsRequest(resources=(changed,)), 2, "resources") == refused
    assert await error(DeleteRecordsRequest(topics=(trimmed,)), 2, "topics", "partitions") == refused
    assert await error(InitProducerIdRequest(transaction_timeout_ms=0), 5) == 0  # from the block in stock
    assert await error(MetadataRequest(topics=(TopicWanted(name="new"),)), 13, "topics") == refused
    assert await error(MetadataRequest(topics=(TopicWanted(name="t"),)), 13, "topics") == 0
    assert await served.produce("t", 1000) == 1
