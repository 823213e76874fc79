"""ShareAcknowledge: acknowledge records delivered to a member of a share group (KIP-932), without fetching more."""

from tailrace.model.ids import Id
from tailrace.wire.messages.acknowledgements import TopicToAcknowledge
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@message(api=79, versions="1-2", flexible="0+")
class ShareAcknowledgeRequest:
    """Acknowledgements by topic and partition, within the member's share session."""

    group_id: str | None = wire(nullable="0+", default=None)
    member_id: str | None = wire(nullable="0+")
    share_session_epoch: Int32  # -1: close the session, else one more than in the request before
    is_renew_ack: bool = wire(since=2, default=False)  # some acknowledgements renew the lock
    topics: tuple[TopicToAcknowledge, ...]


@struct
class PartitionAcknowledged:
    """The result for one partition."""

    partition: Int32
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()


@struct
class TopicAcknowledged:
    """The partitions of one topic."""

    topic_id: Id
    partitions: tuple[PartitionAcknowledged, ...]


@message(api=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse(ExplainedResponse):
    """An error for the whole request, or the result for each partition."""

    acquisition_lock_timeout_ms: Int32 = wire(since=2, default=0, ignorable=True)  # how long renewed locks last
    topics: tuple[TopicAcknowledged, ...] = ()
    node_endpoints: tuple[NodeEndpoint, ...] = ()
