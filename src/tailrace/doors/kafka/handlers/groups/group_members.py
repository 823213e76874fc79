"""What handlers of groups share: who coordinates a group here, and how a member is named."""

from typing import Final

from tailrace.broker.groups.partition_coordinator import GroupPartitionCoordinator
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import InvalidGroupId

HEX_PARTS: Final = (8, 12, 16, 20)  # where a UUID has its dashes

MEMBER_NAME_MAX_CHARS: Final = 4096  # of a name that an id begins with: as text, with all the rest, an id has 32 KiB


def coordinator_of(call: Call, group_id: str) -> GroupPartitionCoordinator:
    """The coordinator of a group with members; only offsets can be kept under no name."""
    if not group_id:
        raise InvalidGroupId("a group needs a name")
    return call.node.group_coordinator.local(group_id)


def new_member_id(call: Call, instance_id: str | None) -> str:
    """As Kafka makes them: people recognise their clients by it."""
    digits = call.node.ports.random.new_id().hex()
    cuts = zip((0, *HEX_PARTS), (*HEX_PARTS, len(digits)), strict=True)
    name = (instance_id or client_id(call))[:MEMBER_NAME_MAX_CHARS]
    return f"{name}-" + "-".join(digits[begin:end] for begin, end in cuts)


def client_id(call: Call) -> str:
    return call.client_id or ""


def client_host(call: Call) -> str:
    return "/" + call.connection.peer.rpartition(":")[0]
