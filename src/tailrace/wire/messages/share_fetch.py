"""ShareFetch: acquire records as a member of a share group (KIP-932), and acknowledge those delivered before.

Acquired records are locked: until they are acknowledged or the lock expires, no other member gets them. The partitions
are those of the member's share session; requests name only partitions to add and partitions with acknowledgements.
"""

from tailrace.model.ids import Id
from tailrace.wire.messages.acknowledgements import TopicToAcknowledge
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int8, Int16, Int32, Int64, Records, message, struct, wire


@struct
class ForgottenTopic:
    """Partitions to remove from the share session."""

    topic_id: Id
    partitions: tuple[Int32, ...]


@message(api=78, versions="1-2", flexible="0+")
class ShareFetchRequest:
    """How many records to acquire, and the changes of the share session."""

    group_id: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+")
    share_session_epoch: Int32  # 0: a new session, -1: close it, else one more than in the request before
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = 2**31 - 1
    max_records: Int32  # exceeded up to the end of a batch, unless the acquire mode is 1
    batch_size: Int32  # the number of records wanted in one range of acquired records
    share_acquire_mode: Int8 = wire(since=2, default=0, ignorable=True)  # 0: whole batches, 1: at most `max_records`
    is_renew_ack: bool = wire(since=2, default=False)  # some acknowledgements renew the lock; fetches nothing
    topics: tuple[TopicToAcknowledge, ...]
    forgotten_topics: tuple[ForgottenTopic, ...] = ()


@struct
class AcquiredRecords:
    """A range of offsets that the member has acquired."""

    first_offset: Int64
    last_offset: Int64  # inclusive
    delivery_count: Int16  # 1: delivered for the first time


@struct
class PartitionShareFetched:
    """Record batches of one partition, and which of their records the member has acquired."""

    partition: Int32
    error_code: Int16 = 0  # of the fetch
    error_message: str | None = wire(nullable="0+", default=None)
    acknowledge_error_code: Int16 = 0  # of the acknowledgements in the request
    acknowledge_error_message: str | None = wire(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
    records: Records = b""  # whole batches: they may contain records that are not acquired
    acquired_records: tuple[AcquiredRecords, ...] = ()


@struct
class TopicShareFetched:
    """The partitions of one topic."""

    topic_id: Id
    partitions: tuple[PartitionShareFetched, ...]


@message(api=78, versions="1-2", flexible="0+")
class ShareFetchResponse(ExplainedResponse):
    """Acquired records by topic and partition, and the results of the acknowledgements."""

    acquisition_lock_timeout_ms: Int32 = 0  # how long acquired records stay locked
    topics: tuple[TopicShareFetched, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
