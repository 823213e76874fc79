"""CreateTopics: create topics, or only validate that they could be created."""

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.schema import Int8, Int16, Int32, message, struct, wire


@struct
class ReplicaAssignment:
    """The brokers that will host the replicas of a partition."""

    partition: Int32
    broker_ids: tuple[Int32, ...]


@struct
class NewTopicConfig:
    """A setting other than the default."""

    name: str
    value: str | None = wire(nullable="0+")


@struct
class NewTopic:
    """A topic to create; -1 for the broker's default partition count or replication factor."""

    name: str
    num_partitions: Int32
    replication_factor: Int16
    assignments: tuple[ReplicaAssignment, ...] = ()  # if given, the two numbers above are -1
    configs: tuple[NewTopicConfig, ...] = ()


@message(api=19, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """The topics to create."""

    topics: tuple[NewTopic, ...]
    timeout_ms: Int32 = 60_000
    validate_only: bool = False


@struct
class CreatedTopicConfig:
    """A setting of the new topic."""

    name: str
    value: str | None = wire(nullable="0+")
    read_only: bool = False
    config_source: Int8 = -1
    is_sensitive: bool = False


@struct
class CreatedTopic:
    """The created topic, or an error."""

    name: str
    topic_id: Id = wire(since=7, default=NO_ID, ignorable=True)
    error_code: Int16 = 0
    error_message: str | None = wire(nullable="0+", default=None)
    topic_config_error_code: Int16 = wire(tag=0, since=5, default=0, ignorable=True)
    num_partitions: Int32 = wire(since=5, default=-1, ignorable=True)
    replication_factor: Int16 = wire(since=5, default=-1, ignorable=True)
    configs: tuple[CreatedTopicConfig, ...] | None = wire(nullable="0+", since=5, default=(), ignorable=True)


@message(api=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """The result for each topic."""

    throttle_time_ms: Int32 = 0
    topics: tuple[CreatedTopic, ...]
