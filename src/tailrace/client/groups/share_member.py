"""A member of a share group (KIP-932): heartbeats, and an assignment that is in force at once.

Several members may read the same partition, so nothing is handed over and nothing has to be released: a partition that
is taken away is simply not fetched any more. A member that was fenced joins again with epoch 0, under the same id.
After a response was lost or an error came, the next heartbeat has all fields.
"""

from collections.abc import Iterable
from math import inf

from tailrace.client.faults import Refused
from tailrace.client.groups.heartbeating import FENCED, JOIN_EPOCH, LEAVE_EPOCH, HeartbeatingMember
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, Partitions, Topics
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import GroupHeartbeatResponse
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


class ShareMember(HeartbeatingMember):
    def __init__(self, options: MemberOptions, member_id: str, now: float) -> None:
        super().__init__(options, member_id, now)
        self._must_tell_all = True
        self._assigned: Partitions = ()  # of the target, those whose topic has a known name

    @property
    def assignment(self) -> Partitions:
        return self._assigned

    @property
    def identity(self) -> Identity | None:
        if self._is_over or self._epoch == JOIN_EPOCH:
            return None
        return Identity(self._member_id, self._epoch, None)

    def next_request(self, now: float) -> ShareGroupHeartbeatRequest | None:
        if self._is_over or now < self.wake_at:
            return None
        return ShareGroupHeartbeatRequest(
            group_id=self._options.group,
            member_id=self._member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=self._options.topics if self._must_tell_all else None,
        )

    def leave(self) -> ShareGroupHeartbeatRequest | None:
        was_over = self._is_over
        self._end()
        if was_over:
            return None
        return ShareGroupHeartbeatRequest(
            group_id=self._options.group, member_id=self._member_id, member_epoch=LEAVE_EPOCH
        )

    def _accepted(self, response: GroupHeartbeatResponse, now: float) -> Events:
        self._must_tell_all = False
        return self._follow()

    def unanswered(self, now: float) -> Events:
        self._failed(now)
        self._must_tell_all = True
        return ()

    def learnt(self, topics: Topics, now: float) -> Events:
        self._learn_names(topics)
        return self._follow()

    def released(self, event: Event, now: float) -> Events:
        return ()  # nothing is ever revoked

    def _refused(self, error: Error, message: str | None, now: float) -> Events:
        if error in FENCED:
            self._epoch = JOIN_EPOCH  # it goes on with what it has: the next assignment corrects that
            return self.unanswered(now)
        if error.retriable:
            return self.unanswered(now)
        self.failure = Refused(error, f"stay in share group {self._options.group}", message)
        return self._end()

    def _end(self) -> Events:
        self._is_over, self.wake_at, self._target = True, inf, ()
        return self._follow()

    def _follow(self) -> Events:
        """Take the target at once; the events say what changed."""
        before, self._assigned = self._assigned, tuple(sorted(self._named()))
        added = tuple(one for one in self._assigned if one not in before)
        lost = tuple(one for one in before if one not in self._assigned)
        events = [Event("lost", lost)] if lost else []
        return (*events, Event("assigned", added)) if added else tuple(events)

    def _named(self) -> Iterable[PartitionName]:
        for one in self._target:
            if one.topic_id in self._names:
                yield PartitionName(self._names[one.topic_id], one.partition)
