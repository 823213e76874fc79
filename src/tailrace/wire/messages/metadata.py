"""Metadata: the brokers of the cluster, and the leader and replicas of each partition."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.schema import Int16, Int32, message, struct, wire


@struct
class TopicWanted:
    """A topic by name; from version 12 on alternatively by id, with name None."""

    topic_id: Id = wire(since=10, default=NO_ID, ignorable=True)
    name: str | None = wire(nullable="10+")


@message(api=3, versions="0-13", flexible="9+")
class MetadataRequest:
    """The topics to describe."""

    topics: tuple[TopicWanted, ...] | None = wire(nullable="1+")  # None: all topics; in version 0 an empty array
    allow_auto_topic_creation: bool = wire(since=4, default=True)
    include_cluster_authorized_operations: bool = wire(since=8, until=10, default=False)
    include_topic_authorized_operations: bool = wire(since=8, default=False)


@struct
class BrokerMetadata:
    """A broker and its address."""

    node_id: Int32
    host: str
    port: Int32
    rack: str | None = wire(nullable="0+", since=1, default=None, ignorable=True)


@struct
class PartitionMetadata:
    """The leader and the replicas of a partition."""

    error_code: Int16 = 0
    partition: Int32
    leader_id: Int32
    leader_epoch: Int32 = wire(since=7, default=-1, ignorable=True)
    replicas: tuple[Int32, ...]
    isr: tuple[Int32, ...]
    offline_replicas: tuple[Int32, ...] = wire(since=5, default=(), ignorable=True)


@struct
class TopicMetadata:
    """A topic and its partitions, or an error."""

    error_code: Int16 = 0
    name: str | None = wire(nullable="12+")
    topic_id: Id = wire(since=10, default=NO_ID, ignorable=True)  # NO_ID makes clients use the name instead
    is_internal: bool = wire(since=1, default=False, ignorable=True)
    partitions: tuple[PartitionMetadata, ...] = ()
    topic_authorized_operations: Int32 = wire(since=8, default=NOT_ASKED)


@message(api=3, versions="0-13", flexible="9+")
class MetadataResponse:
    """The cluster as this broker knows it."""

    throttle_time_ms: Int32 = wire(since=3, default=0, ignorable=True)
    brokers: tuple[BrokerMetadata, ...]
    cluster_id: str | None = wire(nullable="0+", since=2, default=None, ignorable=True)
    controller_id: Int32 = wire(since=1, default=-1, ignorable=True)
    topics: tuple[TopicMetadata, ...]
    cluster_authorized_operations: Int32 = wire(since=8, until=10, default=NOT_ASKED)
    error_code: Int16 = wire(since=13, default=0, ignorable=True)
