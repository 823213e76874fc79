"""InitializeSharePartition: a group coordinator lets a partition's leader store where a share group starts to read."""

from tailrace.model.ids import Id
from tailrace.wire.schema import Int16, Int32, Int64, message, wire


@message(api=1023, versions="0-0", flexible="0+")
class InitializeSharePartition:
    group: str
    topic_id: Id
    partition: Int32
    state_epoch: Int32
    start_offset: Int64  # -1: by the group's reset policy


@message(api=1023, versions="0-0", flexible="0+")
class InitializeSharePartitionAnswer:
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    controller: Int32 = -1
