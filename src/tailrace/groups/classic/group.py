"""A classic group: its members, state and generation.

The log has a generation only once its assignment is complete. Waiting requests, alarms and a rebalance in progress are
known to the active coordinator alone. After a failover the next coordinator answers members of a generation that is
not in the log with ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID, and they join again. The transitions are in `joining`,
`syncing` and `rebalance`.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from tailrace.groups.classic.member import ClassicMember
from tailrace.groups.classic.states import TRANSITIONS, Cause, Move, State
from tailrace.groups.consumer_protocol import CONSUMER_PROTOCOL, subscribed_topics
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue
from tailrace.groups.requests import JoinAnswer, JoinedMember, MemberId
from tailrace.groups.turn import Alarm, GroupTurn
from tailrace.model.faults import FencedInstance, IllegalGeneration, UnknownMember
from tailrace.model.limits import GROUP_REBALANCE_MIN_MS


class ClassicGroup:
    kind: ClassVar = "classic"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.state = State.EMPTY
        self.state_since_ms = -1  # wall clock; when the group became empty; -1: it never had members
        self.generation = 0  # never decreases
        self.protocol_type: str | None = None  # None: no member has ever joined
        self.protocol: str | None = None  # of this generation: the assignor
        self.leader: str | None = None  # a member id; None only if there are no members
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}  # member ids by instance id
        self.pending: dict[str, None] = {}  # member ids sent with MEMBER_ID_REQUIRED, expected to join
        self.unsynced: dict[str, None] = {}  # members of this generation that have not sent SyncGroup
        self.is_first_rebalance = False  # of an empty group, in its initial delay
        self.has_new_members = False  # a member has joined since the initial delay was last started
        self.first_rebalance_deadline = 0.0  # monotonic clock; the initial delay is not extended beyond it

    # The log

    def replay(self, value: GroupMetadataValue) -> None:
        """Apply a generation's record. The active coordinator knows all of it already, except the assignments."""
        self.generation, self.protocol, self.leader = value.generation, value.protocol, value.leader
        self.protocol_type = value.protocol_type or None
        self.state_since_ms = value.current_state_timestamp
        for stored in value.members:
            if stored.member_id in self.members:
                self.members[stored.member_id].assignment = stored.assignment

    def restore(self, value: GroupMetadataValue) -> None:
        """Apply a generation's record while the log is loaded: members too come from the record."""
        self.members = {one.member_id: ClassicMember.restored(one, value.protocol) for one in value.members}
        self.static_members = {one.instance_id: one.id for one in self.members.values() if one.instance_id is not None}
        self.state = State.STABLE if self.members else State.EMPTY
        self.replay(value)

    def entry(self, assignments: Mapping[str, bytes], wall_ms: int) -> Entry:
        """The record of this generation."""
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=wall_ms,
            members=tuple(one.stored(self.protocol, assignments.get(one.id, b"")) for one in self.members.values()),
        )
        return Entry(GroupMetadataKey(group=self.id), value)

    # States and members

    def move(self, cause: Cause, turn: GroupTurn) -> None:
        to = TRANSITIONS[self.state, cause]
        turn.moves.append((self.id, Move(self.state, cause, to)))
        self.state = to

    def add(self, member: ClassicMember) -> None:
        self.members[member.id] = member
        self.pending.pop(member.id, None)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: ClassicMember, turn: GroupTurn) -> None:
        """Remove a member; a request that it waits with is answered with UNKNOWN_MEMBER_ID."""
        removed = UnknownMember(f"Member {member.id} was removed from group {self.id}.")
        turn.answer(member.joining, removed)
        turn.answer(member.syncing, removed)
        turn.alarms.cancel(self.session_alarm(member.id))
        del self.members[member.id]
        self.unsynced.pop(member.id, None)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def find(self, identity: MemberId) -> ClassicMember:
        """The member that a request identifies; raises `FencedInstance` or `UnknownMember` if there is none."""
        if identity.instance_id is not None:
            known = self.static_members.get(identity.instance_id)
            if known is not None and known != identity.member_id:
                raise FencedInstance(
                    f"Instance id {identity.instance_id} of group {self.id} belongs to member {known}."
                )
        member = self.members.get(identity.member_id)
        if member is None or (identity.instance_id is not None and member.instance_id != identity.instance_id):
            raise UnknownMember(f"Member {identity} is not a member of group {self.id}.")
        return member

    def require_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"Group {self.id} is in generation {self.generation}, not {generation}.")

    # Alarms

    def session_alarm(self, member_id: str) -> Alarm:
        return Alarm(self.id, "session", member_id)

    @property
    def join_alarm(self) -> Alarm:
        return Alarm(self.id, "join")

    @property
    def sync_alarm(self) -> Alarm:
        return Alarm(self.id, "sync")

    def restart_session(self, member: ClassicMember, turn: GroupTurn) -> None:
        """A request of the member has arrived: its session timeout starts over."""
        turn.alarm(self.session_alarm(member.id), member.session_timeout_ms)

    # Questions

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_unused(self) -> bool:
        """It has neither members nor pending member ids."""
        return self.is_empty and not self.pending

    def is_expired(self, now_ms: int, retention_ms: int) -> bool:
        """It has been empty for the offsets' retention time."""
        return self.is_unused and now_ms - self.state_since_ms >= retention_ms

    @property
    def all_have_joined(self) -> bool:
        return not self.pending and all(one.joining is not None for one in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of its members' rebalance timeouts."""
        timeouts = (one.rebalance_timeout_ms for one in self.members.values())
        return max((max(one, GROUP_REBALANCE_MIN_MS) for one in timeouts), default=0)

    @property
    def subscribed(self) -> frozenset[str] | None:
        """The topics that its members are subscribed to; None: unknown."""
        if self.protocol_type != CONSUMER_PROTOCOL or self.protocol is None:
            return None
        return subscribed_topics(one.protocols.get(self.protocol, b"") for one in self.members.values())

    def supports(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether a new member would have a protocol in common with all members."""
        if not self.members:
            return True
        shared = self._shared_protocols()
        return self.protocol_type == protocol_type and any(one in shared for one in protocols)

    def _shared_protocols(self) -> dict[str, None]:
        members = list(self.members.values())
        return {name: None for name in members[0].protocols if all(name in one.protocols for one in members)}

    def select_protocol(self) -> str:
        """Every member votes for the protocol it prefers among those that all support; most votes win."""
        shared = self._shared_protocols()
        votes = dict.fromkeys(shared, 0)
        for member in self.members.values():
            votes[next(name for name in member.protocols if name in shared)] += 1
        return max(votes, key=lambda name: votes[name])

    def join_answer(self, member: ClassicMember) -> JoinAnswer:
        """This generation, for one of its members."""
        is_leader = member.id == self.leader
        return JoinAnswer(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=self.joined_members() if is_leader else (),
        )

    def joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(one.id, one.instance_id, one.protocols.get(self.protocol or "", b""))
            for one in self.members.values()
        )
