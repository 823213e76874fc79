"""CallShareCoordinator: group coordinators and leaders have the state of share partitions stored, read and deleted.

All calls of a request are about share partitions whose state is in the same partition of `__share_group_state`. Each
has its own result.
"""

from tailrace.model.ids import Id
from tailrace.wire.messages.peers.answer import PeerAnswer
from tailrace.wire.schema import Int8, Int16, Int32, Int64, message, struct, wire


@struct
class ShareStateBatch:
    """A range of offsets that have the same state."""

    first: Int64
    last: Int64
    state: Int8  # by Kafka's numbers
    count: Int16  # of deliveries
    not_before: Int64 = -1


@struct
class ShareStateCall:
    """One call; fields that its kind does not use have their defaults."""

    kind: Int8  # 0: initialize, 1: read, 2: write, 3: delete, 4: summary
    group: str
    topic_id: Id
    partition: Int32
    state_epoch: Int32 = -1
    leader_epoch: Int32 = -1
    start: Int64 = -1
    complete_count: Int32 = -1
    batches: tuple[ShareStateBatch, ...] = ()
    metadata_end: Int64 = wire(tag=0, default=-1)  # as in `queues.state.ShareState`


@struct
class ReadShareState:
    """What is stored of a share partition."""

    state_epoch: Int32
    start: Int64
    complete_count: Int32
    batches: tuple[ShareStateBatch, ...]
    metadata_end: Int64 = wire(tag=0, default=-1)


@struct
class ShareStateResult:
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    state: ReadShareState | None = wire(nullable="0+", default=None)  # of read and summary


@message(api=1022, versions="0-0", flexible="0+")
class CallShareCoordinator:
    calls: tuple[ShareStateCall, ...]


@message(api=1022, versions="0-0", flexible="0+")
class CallShareCoordinatorAnswer(PeerAnswer):
    results: tuple[ShareStateResult, ...] = ()  # of each call, in the same order
