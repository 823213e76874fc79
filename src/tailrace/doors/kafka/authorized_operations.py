"""What a client may do, as bit sets of Kafka's operation numbers. Until there are ACLs, everybody may do everything."""

from typing import Final

from tailrace.wire.messages.authorization import not_asked

read, write, create, delete, alter, describe = 3, 4, 5, 6, 7, 8
cluster_action, describe_configs, alter_configs, idempotent_write = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


topic_operations: Final = _bits(read, write, create, delete, alter, describe, describe_configs, alter_configs)
cluster_operations: Final = _bits(
    create, cluster_action, describe_configs, describe, alter_configs, alter, idempotent_write
)

group_operations: Final = _bits(read, delete, describe, describe_configs, alter_configs)


def allowed_on_topic(asked: bool) -> int:
    return topic_operations if asked else not_asked


def allowed_on_cluster(asked: bool) -> int:
    return cluster_operations if asked else not_asked


def allowed_on_group(asked: bool) -> int:
    return group_operations if asked else not_asked
