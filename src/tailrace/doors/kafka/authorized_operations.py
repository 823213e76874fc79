"""Authorized operations, as bit fields of Kafka's ACL operation numbers. Without ACLs, every client has all of them."""

from typing import Final

from tailrace.wire.messages.authorization import NOT_ASKED

READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _bits(READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)
CLUSTER_OPERATIONS: Final = _bits(
    CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, DESCRIBE, ALTER_CONFIGS, ALTER, IDEMPOTENT_WRITE
)

GROUP_OPERATIONS: Final = _bits(READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS)


def allowed_on_topic(asked: bool) -> int:
    return TOPIC_OPERATIONS if asked else NOT_ASKED


def allowed_on_cluster(asked: bool) -> int:
    return CLUSTER_OPERATIONS if asked else NOT_ASKED


def allowed_on_group(asked: bool) -> int:
    return GROUP_OPERATIONS if asked else NOT_ASKED
