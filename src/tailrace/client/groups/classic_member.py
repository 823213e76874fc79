"""A member of a classic group: JoinGroup, SyncGroup, then Heartbeat until the next rebalance.

    JOINING ──▶ ASSIGNING (the leader waits for metadata) ──▶ SYNCING ──▶ STABLE ──▶ REVOKING ──▶ JOINING
            └──────────────── a follower ───────────────────▶┘

The protocol is eager: a rebalance takes all partitions of all members before it deals them anew. REVOKING lasts until
the application has released them; heartbeats go on, so that only the rebalance timeout bounds it. When the coordinator
does not know the member or its generation, the partitions are lost and it joins again at once. A coordinator that does
not answer changes nothing: the session is kept by the next one, which only has to hear from its members in time.
"""

from collections.abc import Mapping
from enum import Enum
from math import inf
from typing import Any

from tailrace.client.faults import ClientError, Refused, error_of
from tailrace.client.groups.assignors import ASSIGNORS, Subscriber
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, Partitions, Topics, pause_s
from tailrace.client.groups.subscriptions import (
    decode_assignment,
    decode_topics,
    encode_assignment,
    encode_subscription,
)
from tailrace.groups.consumer_protocol import CONSUMER_PROTOCOL
from tailrace.wire.errors import Error
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoiningProtocol
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from tailrace.wire.primitives import WireError


class State(Enum):
    JOINING = "joining"  # owns nothing, and joins the next generation
    ASSIGNING = "assigning"  # leads the generation, and waits for metadata to compute the assignment
    SYNCING = "syncing"  # fetches its assignment
    STABLE = "stable"
    REVOKING = "revoking"  # a rebalance began, and the application still has to release the partitions
    OVER = "over"  # left or failed


class ClassicMember:
    def __init__(self, options: MemberOptions, now: float) -> None:
        self._options = options
        self.state = State.JOINING
        self.assignment: Partitions = ()
        self.failure: ClientError | None = None
        self.wake_at = now
        self._failures = 0  # in a row
        self._member_id = ""
        self._generation = -1
        self._protocol = ""  # the assignor that the group has chosen
        self._subscribers: dict[str, Subscriber] = {}  # all members of the generation; empty unless this one leads it
        self._assignments: dict[str, Partitions] = {}  # the leader's, for SyncGroup
        self._counts: Mapping[str, int] = {}  # of partitions, as the leader's assignment has them
        self._revoking: Event | None = None

    @property
    def identity(self) -> Identity | None:
        if self.state not in (State.STABLE, State.REVOKING):
            return None
        return Identity(self._member_id, self._generation, self._options.instance_id)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({topic for one in self._subscribers.values() for topic in one.topics}))

    @property
    def needs_topics(self) -> bool:
        return self.state is State.ASSIGNING

    # Requests

    def next_request(self, now: float) -> object | None:
        if now < self.wake_at:
            return None
        match self.state:
            case State.JOINING:
                return self._join_request()
            case State.SYNCING:
                return self._sync_request()
            case State.STABLE | State.REVOKING:
                return HeartbeatRequest(
                    group_id=self._options.group,
                    generation_id=self._generation,
                    member_id=self._member_id,
                    group_instance_id=self._options.instance_id,
                )
            case State.ASSIGNING | State.OVER:
                return None

    def _join_request(self) -> JoinGroupRequest:
        options = self._options
        subscription = encode_subscription(options.topics)
        return JoinGroupRequest(
            group_id=options.group,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            member_id=self._member_id,
            group_instance_id=options.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=tuple(JoiningProtocol(name=name, metadata=subscription) for name in options.assignors),
        )

    def _sync_request(self) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self._options.group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=self._options.instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=self._protocol,
            assignments=tuple(
                MemberAssignment(member_id=member, assignment=encode_assignment(partitions))
                for member, partitions in self._assignments.items()
            ),
        )

    def leave(self) -> LeaveGroupRequest | None:
        """A static member does not leave: it keeps its partitions for a restart, until its session expires."""
        is_member = self.state is not State.OVER and self._member_id and self._options.instance_id is None
        self._end()
        if not is_member:
            return None
        return LeaveGroupRequest(group_id=self._options.group, members=(LeavingMember(member_id=self._member_id),))

    # Responses

    def answered(self, response: Any, now: float) -> Events:
        error = error_of(response.error_code)
        match response:
            case JoinGroupResponse() if self.state is State.JOINING:
                if error is Error.MEMBER_ID_REQUIRED:
                    self._member_id = response.member_id  # with this id it can join (KIP-394)
                    return self.unanswered(now)
                return self._refused(error, "join", now) if error else self._joined(response, now)
            case SyncGroupResponse() if self.state is State.SYNCING:
                return self._refused(error, "sync with", now) if error else self._synced(response, now)
            case HeartbeatResponse() if self.state is not State.OVER:
                return self._refused(error, "stay in", now) if error else self._schedule_heartbeat(now)
        return ()  # to a request that the machine no longer waits for

    def unanswered(self, now: float) -> Events:
        self.wake_at = now + pause_s(self._failures)
        self._failures += 1
        return ()

    def _joined(self, response: JoinGroupResponse, now: float) -> Events:
        self._member_id, self._generation = response.member_id, response.generation_id
        self._protocol = response.protocol_name or ""
        self._assignments, self._counts, self._subscribers = {}, {}, {}
        if response.leader == self._member_id:
            try:
                self._subscribers = {
                    one.member_id: Subscriber(decode_topics(one.metadata), one.group_instance_id)
                    for one in response.members
                }
            except WireError as error:
                return self._fail(ClientError(f"cannot read a subscription in group {self._options.group}: {error}"))
        if self._subscribers and not response.skip_assignment:
            self.state, self.wake_at = State.ASSIGNING, inf
        else:
            self._sync(now)
        return ()

    def _sync(self, now: float) -> None:
        self.state, self.wake_at = State.SYNCING, now

    def _synced(self, response: SyncGroupResponse, now: float) -> Events:
        try:
            self.assignment = decode_assignment(response.assignment)
        except WireError as error:
            return self._fail(ClientError(f"cannot read the assignment of group {self._options.group}: {error}"))
        self.state = State.STABLE
        self._schedule_heartbeat(now)
        return (Event("assigned", self.assignment),) if self.assignment else ()

    def _schedule_heartbeat(self, now: float) -> Events:
        self._failures = 0
        if self.state in (State.STABLE, State.REVOKING):
            self.wake_at = now + self._options.heartbeat_interval_ms / 1000
        return ()

    def _refused(self, error: Error, what: str, now: float) -> Events:
        if error is Error.REBALANCE_IN_PROGRESS:
            return self._rebalance(now)
        if error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
            if error is Error.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            return self._lose(now)
        if error.retriable:
            return self.unanswered(now)
        return self._fail(Refused(error, f"{what} group {self._options.group}"))

    def _rebalance(self, now: float) -> Events:
        if self.state is State.REVOKING:
            return self._schedule_heartbeat(now)
        if not self.assignment:
            self.state = State.JOINING
            return self.unanswered(now)
        self._revoking = Event("revoked", self.assignment)
        self.state = State.REVOKING
        self._schedule_heartbeat(now)
        return (self._revoking,)

    def _lose(self, now: float) -> Events:
        self.state = State.JOINING
        self.unanswered(now)
        return self._drop()

    def _drop(self) -> Events:
        lost, self.assignment, self._revoking = self.assignment, (), None
        return (Event("lost", lost),) if lost else ()

    def _fail(self, failure: ClientError) -> Events:
        self.failure = failure
        return self._end()

    def _end(self) -> Events:
        self.state, self.wake_at = State.OVER, inf
        return self._drop()

    # What the application and the metadata say

    def released(self, event: Event, now: float) -> Events:
        if event is self._revoking:
            self.assignment, self._revoking = (), None
            self.state, self.wake_at = State.JOINING, now
        return ()

    def learnt(self, topics: Topics, now: float) -> Events:
        """The leader computes the assignment, or begins a rebalance when topics or partitions were added."""
        counts = {name: topics[name].partitions for name in self.topics if name in topics}
        if self.state is State.ASSIGNING:
            if self._protocol not in ASSIGNORS:
                return self._fail(ClientError(f"group {self._options.group} has chosen assignor {self._protocol!r}"))
            self._assignments = ASSIGNORS[self._protocol](self._subscribers, counts)
            self._counts = counts
            self._sync(now)
        elif self.state is State.STABLE and self._subscribers and counts != self._counts:
            has_assigned, self._counts = bool(self._counts or self._assignments), counts
            return self._rebalance(now) if has_assigned else ()
        return ()
