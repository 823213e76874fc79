"""InitializeSharePartition: a group coordinator lets a partition's leader store where a share group starts to read."""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int32, Int64, message, wire


@message(api=1023, versions="0-0", flexible="0+")
class InitializeSharePartition:
    group: str
    topic_id: Id
    partition: Int32
    state_epoch: Int32
    start_offset: Int64  # -1: by the group's reset policy
    metadata_end: Int64 = wire(tag=0, default=-1)  # as in `queues.state.ShareState`


@message(api=1023, versions="0-0", flexible="0+")
class InitializeSharePartitionAnswer(PeerAnswer):
    """Done, or why not."""
