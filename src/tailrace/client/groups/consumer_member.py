"""A member of a group of the consumer protocol (KIP-848): one heartbeat, with everything that changed.

The coordinator answers with the member's epoch and, when it changed, with its whole assignment, the *target*. What the
member owns follows it in steps: it releases partitions that are not in the target, owns those that are new in it, and
reports with the next heartbeat what it owns. The coordinator gives a partition to another member only after that
report. A member that was fenced has lost its partitions, and joins again with epoch 0.

After a response was lost or an error came, the next heartbeat has all fields: then the coordinator repeats the target.
Topics are named by id, so partitions are owned only once the metadata tells the names of their topics.
"""

from collections.abc import Iterable
from enum import Enum
from math import inf
from typing import Final

from tailrace.client.faults import Refused
from tailrace.client.groups.heartbeating import FENCED, JOIN_EPOCH, LEAVE_EPOCH, HeartbeatingMember
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, Partitions, Topics
from tailrace.groups.consumer.partition_sets import PartitionSet, by_topic, difference, partition_set
from tailrace.model.ids import PartitionName, TopicPartition
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    GroupHeartbeatResponse,
    OwnedTopic,
)

STATIC_LEAVE_EPOCH: Final = -2
UNCHANGED: Final = -1  # in place of a rebalance timeout


class State(Enum):
    JOINING = "joining"
    STABLE = "stable"  # owns its whole target, as far as the names of topics are known
    REVOKING = "revoking"  # the application has to release partitions first
    OVER = "over"  # left or failed


class ConsumerMember(HeartbeatingMember):
    def __init__(self, options: MemberOptions, member_id: str, now: float) -> None:
        super().__init__(options, member_id, now)
        self._owned: PartitionSet = ()
        self._reported: PartitionSet | None = None  # in the last heartbeat that said what it owns
        self._acknowledged: PartitionSet | None = None  # the coordinator knows of these; None: report them again
        self._revoking: Event | None = None
        self._released: PartitionSet = ()  # what `_revoking` takes

    @property
    def state(self) -> State:
        if self._is_over:
            return State.OVER
        if self._revoking is not None:
            return State.REVOKING
        return State.JOINING if self._epoch == JOIN_EPOCH else State.STABLE

    @property
    def assignment(self) -> Partitions:
        return self._named(self._owned)

    @property
    def identity(self) -> Identity | None:
        if self.state in (State.JOINING, State.OVER):
            return None
        return Identity(self._member_id, self._epoch, self._options.instance_id)

    # Requests

    def next_request(self, now: float) -> ConsumerGroupHeartbeatRequest | None:
        if self._is_over or now < self.wake_at:
            return None
        options, is_full = self._options, self._acknowledged is None
        owned = self._owned if is_full or self._owned != self._acknowledged else None
        self._reported = self._owned
        return ConsumerGroupHeartbeatRequest(
            group_id=options.group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            instance_id=options.instance_id,
            rebalance_timeout_ms=options.rebalance_timeout_ms if is_full else UNCHANGED,
            subscribed_topic_names=options.topics if is_full else None,
            server_assignor=options.server_assignor if is_full else None,
            topic_partitions=None if owned is None else _by_id(owned),
        )

    def leave(self) -> ConsumerGroupHeartbeatRequest | None:
        """A static member says that it will be back: the coordinator keeps its partitions until its session expires."""
        was_over = self._is_over
        self._end()
        if was_over:
            return None
        instance_id = self._options.instance_id
        return ConsumerGroupHeartbeatRequest(
            group_id=self._options.group,
            member_id=self._member_id,
            member_epoch=LEAVE_EPOCH if instance_id is None else STATIC_LEAVE_EPOCH,
            instance_id=instance_id,
        )

    # Responses

    def _accepted(self, response: GroupHeartbeatResponse, now: float) -> Events:
        self._member_id = response.member_id or self._member_id
        self._acknowledged = self._reported
        return self._reconcile(now)

    def unanswered(self, now: float) -> Events:
        self._failed(now)
        self._acknowledged = None
        return ()

    def _refused(self, error: Error, message: str | None, now: float) -> Events:
        if error in FENCED:
            self._epoch = JOIN_EPOCH
            self.unanswered(now)
            return self._lose()
        if error.retriable:
            return self.unanswered(now)
        self.failure = Refused(error, f"stay in group {self._options.group}", message)
        return self._end()

    def _end(self) -> Events:
        self._is_over, self.wake_at = True, inf
        return self._lose()

    def _lose(self) -> Events:
        lost, self._owned, self._target, self._revoking = self.assignment, (), (), None
        return (Event("lost", lost),) if lost else ()

    # From what it owns to the target

    def _reconcile(self, now: float) -> Events:
        """The next step to the target: release, or own, or nothing."""
        if self._revoking is not None or self.identity is None:
            return ()
        revoked = difference(self._owned, self._target)
        if revoked:
            self._released = revoked
            self._revoking = Event("revoked", self._named(revoked))
            return (self._revoking,)
        added = tuple(one for one in difference(self._target, self._owned) if one.topic_id in self._names)
        if added or self._acknowledged not in (None, self._owned):
            self.wake_at = now  # the coordinator waits for the report
        if not added:
            return ()
        self._owned = partition_set(self._owned + added)
        return (Event("assigned", self._named(added)),)

    def released(self, event: Event, now: float) -> Events:
        if event is not self._revoking:
            return ()
        self._revoking = None
        self._owned = difference(self._owned, self._released)
        return self._reconcile(now)

    def learnt(self, topics: Topics, now: float) -> Events:
        self._learn_names(topics)
        return self._reconcile(now)

    def _named(self, partitions: Iterable[TopicPartition]) -> Partitions:
        return tuple(sorted(PartitionName(self._names[one.topic_id], one.partition) for one in partitions))


def _by_id(partitions: PartitionSet) -> tuple[OwnedTopic, ...]:
    return tuple(OwnedTopic(topic_id=topic, partitions=some) for topic, some in by_topic(partitions).items())
