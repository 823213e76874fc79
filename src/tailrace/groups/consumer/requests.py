"""ConsumerGroupHeartbeat: the request of a member, its answer, and the checks that need no group."""

from typing import Final

from tailrace.groups.consumer.member import STATIC_LEAVE_EPOCH
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.requests import MemberId
from tailrace.model.faults import InvalidRequest, UnsupportedAssignor
from tailrace.model.frozen import frozen

JOIN_EPOCH: Final = 0  # the member epoch of a request to join
UNCHANGED: Final = -1  # in place of a rebalance timeout


@frozen
class Heartbeat:
    """In fields that may be None, None means: unchanged since the last heartbeat."""

    identity: MemberId
    epoch: int  # the member's; 0: it joins, -1: it leaves, -2: a static member leaves temporarily
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    names: tuple[str, ...] | None = None  # of the topics that it subscribes to
    expression: str | None = None  # a regular expression for more topics; empty: none
    assignor: str | None = None
    owned: PartitionSet | None = None  # the partitions that it owns

    @property
    def is_full(self) -> bool:
        """All fields are set, as clients do after an error: the member may have missed the last answer."""
        has_topics = self.names is not None or self.expression is not None
        return self.epoch == JOIN_EPOCH or (
            self.rebalance_timeout_ms != UNCHANGED and has_topics and self.owned is not None
        )


@frozen
class HeartbeatAnswer:
    member_id: str
    epoch: int
    interval_ms: int = 0  # until the next heartbeat
    assigned: PartitionSet | None = None  # the whole assignment; None: unchanged


def check_heartbeat(beat: Heartbeat, assignors: tuple[str, ...]) -> None:
    """Kafka's rules for the fields of a request."""
    for name, text in (("InstanceId", beat.identity.instance_id), ("RackId", beat.rack_id)):
        if text == "":
            raise InvalidRequest(f"{name} can't be empty.")
    if not beat.identity.member_id:
        raise InvalidRequest("MemberId can't be empty.")
    if beat.epoch == JOIN_EPOCH:
        _check_join(beat)
    elif beat.epoch == STATIC_LEAVE_EPOCH and beat.identity.instance_id is None:
        raise InvalidRequest("InstanceId must be set for member epoch -2: only static members leave temporarily.")
    elif beat.epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequest(f"MemberEpoch {beat.epoch} is invalid.")
    if beat.assignor is not None and beat.assignor not in assignors:
        raise UnsupportedAssignor(
            f"ServerAssignor {beat.assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )


def _check_join(beat: Heartbeat) -> None:
    if beat.rebalance_timeout_ms == UNCHANGED:
        raise InvalidRequest("RebalanceTimeoutMs must be set when joining.")
    if beat.owned != ():
        raise InvalidRequest("TopicPartitions must be empty when joining.")
    if beat.names is None and beat.expression is None:
        raise InvalidRequest("SubscribedTopicNames or SubscribedTopicRegex must be set when joining.")
