"""A classic group: who is in it, in which state and generation.

What is in the log is changed by replay; who waits for whom, and until when, is known only to the coordinator that
serves, and goes with it: members whose coordinator fell are unknown or of an old generation to the next one, and join
again. What a group does is in `joining`, `syncing` and `rebalance`.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from tailrace.groups.alarms import Alarm
from tailrace.groups.member import ClassicMember
from tailrace.groups.records import Entry, GroupMetadataKey, GroupMetadataValue
from tailrace.groups.requests import Joined, JoinedMember, MemberId
from tailrace.groups.states import TRANSITIONS, Cause, Move, State
from tailrace.groups.subscription import CONSUMER_PROTOCOL, subscribed_topics
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import FencedInstance, IllegalGeneration, UnknownMember
from tailrace.model.limits import GROUP_REBALANCE_MIN_MS


class ClassicGroup:
    kind: ClassVar = "classic"

    def __init__(self, group_id: str) -> None:
        self.id = group_id
        self.state = State.EMPTY
        self.state_since_ms = -1  # wall clock, when it became empty; -1: it never had members
        self.generation = 0  # never falls
        self.protocol_type: str | None = None  # None: nobody ever joined
        self.protocol: str | None = None  # how the work of this generation is shared out
        self.leader: str | None = None  # always a member, while there is one
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}  # member ids by instance id
        self.pending: dict[str, None] = {}  # ids that were given out, and are expected to join
        self.unsynced: dict[str, None] = {}  # members of this generation that have not asked for their part
        self.is_first = False  # its first members join: others are given some time to come, too
        self.has_newcomers = False  # since that time was last measured
        self.first_until = 0.0

    # The log

    def replay(self, value: GroupMetadataValue) -> None:
        """A generation, as it stands in the log. A live coordinator knows it already, but for who has got what."""
        self.generation, self.protocol, self.leader = value.generation, value.protocol, value.leader
        self.protocol_type = value.protocol_type or None
        self.state_since_ms = value.current_state_timestamp
        for stored in value.members:
            if stored.member_id in self.members:
                self.members[stored.member_id].assignment = stored.assignment

    def restore(self, value: GroupMetadataValue) -> None:
        """The same for a coordinator that does not serve yet: the log is all it knows."""
        self.members = {one.member_id: ClassicMember.restored(one, value.protocol) for one in value.members}
        self.static = {one.instance_id: one.id for one in self.members.values() if one.instance_id is not None}
        self.state = State.STABLE if self.members else State.EMPTY
        self.replay(value)

    def entry(self, assignments: Mapping[str, bytes], wall_ms: int) -> Entry:
        """This generation, for the log."""
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
            self.static[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: ClassicMember, turn: GroupTurn) -> None:
        """Whoever still waits as this member is told that it is none."""
        gone = UnknownMember(f"{member.id} is not in group {self.id} any more")
        turn.answer(member.joining, gone)
        turn.answer(member.syncing, gone)
        turn.alarms.cancel(self.session_of(member.id))
        del self.members[member.id]
        self.unsynced.pop(member.id, None)
        if member.instance_id is not None:
            del self.static[member.instance_id]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def find(self, who: MemberId) -> ClassicMember:
        """A member by what it says it is; a fault where it is not."""
        if who.instance_id is not None:
            known = self.static.get(who.instance_id)
            if known is not None and known != who.member_id:
                raise FencedInstance(f"{who.instance_id} of group {self.id} is another client by now")
        member = self.members.get(who.member_id)
        if member is None or (who.instance_id is not None and member.instance_id != who.instance_id):
            raise UnknownMember(f"{who.member_id or who.instance_id} is not in group {self.id}")
        return member

    def require_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"group {self.id} is in generation {self.generation}, not {generation}")

    # Alarms

    def session_of(self, member_id: str) -> Alarm:
        return Alarm(self.id, "session", member_id)

    @property
    def join_alarm(self) -> Alarm:
        return Alarm(self.id, "join")

    @property
    def sync_alarm(self) -> Alarm:
        return Alarm(self.id, "sync")

    def hear(self, member: ClassicMember, turn: GroupTurn) -> None:
        """A member gave a sign of life."""
        turn.alarm(self.session_of(member.id), member.session_timeout_ms)

    # Questions

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def is_unused(self) -> bool:
        """Nobody is in it, and nobody is expected."""
        return self.is_empty and not self.pending

    def is_old(self, now_ms: int, retention_ms: int) -> bool:
        """Nobody was in it for long."""
        return self.is_unused and now_ms - self.state_since_ms >= retention_ms

    @property
    def all_have_joined(self) -> bool:
        return not self.pending and all(one.joining is not None for one in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        wanted = (one.rebalance_timeout_ms for one in self.members.values())
        return max((max(one, GROUP_REBALANCE_MIN_MS) for one in wanted), default=0)

    @property
    def subscribed(self) -> frozenset[str] | None:
        """The topics that its members read; None: that is not known."""
        if self.protocol_type != CONSUMER_PROTOCOL or self.protocol is None:
            return None
        return subscribed_topics(one.protocols.get(self.protocol, b"") for one in self.members.values())

    def may_join(self, protocol_type: str, protocols: Iterable[str]) -> bool:
        """Whether all members and a new one could share work."""
        if not self.members:
            return True
        known = self._known_to_all()
        return self.protocol_type == protocol_type and any(one in known for one in protocols)

    def _known_to_all(self) -> dict[str, None]:
        members = list(self.members.values())
        return {name: None for name in members[0].protocols if all(name in one.protocols for one in members)}

    def best_protocol(self) -> str:
        """Of those that all know, the one that most like best."""
        known = self._known_to_all()
        votes = dict.fromkeys(known, 0)
        for member in self.members.values():
            votes[next(name for name in member.protocols if name in known)] += 1
        return max(votes, key=lambda name: votes[name])

    def joined(self, member: ClassicMember) -> Joined:
        """This generation, as one of its members is told."""
        leads = member.id == self.leader
        return Joined(
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            member_id=member.id,
            members=self.roll() if leads else (),
        )

    def roll(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(one.id, one.instance_id, one.protocols.get(self.protocol or "", b""))
            for one in self.members.values()
        )
