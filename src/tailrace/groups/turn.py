"""The inputs and outputs of one call of the group state machine.

The driver (`broker/groups/partition_coordinator.py`) fills in the time, the settings and the topics, appends and
replays `records`, and gives `answers` only when the records are committed. A request that has to wait for other
members holds a ticket: a later turn answers it, exactly once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tailrace.groups.classic.states import Move
from tailrace.groups.consumer.expressions import KnownMatches
from tailrace.groups.consumer.states import MemberMove
from tailrace.groups.records import Entry
from tailrace.groups.requests import Answer, Ticket
from tailrace.groups.share.states import ShareMove
from tailrace.groups.topics import NoTopics, Topics
from tailrace.model.alarms import Alarms
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import (
    HEARTBEAT_INTERVAL,
    SESSION_TIMEOUT,
    SHARE_HEARTBEAT_INTERVAL,
    SHARE_SESSION_TIMEOUT,
)
from tailrace.model.proposal import InTransaction


class Alarm(NamedTuple):
    """A timer of a group or of one of its members. Setting an equal one again replaces it."""

    group_id: str
    what: str  # "session", "join", "sync" or "rebalance"
    member_id: str = ""


@frozen
class Rules:
    """The broker's settings for groups."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    offsets_retention_ms: int
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5000
    consumer_max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")  # the first is used when no member names one
    may_upgrade: bool = True  # a classic group to a consumer group
    may_downgrade: bool = True
    share_session_timeout_ms: int = 45_000
    share_heartbeat_interval_ms: int = 5000
    share_max_size: int = 200


@dataclass(slots=True, kw_only=True)
class GroupTurn:
    now: float  # monotonic clock, in seconds
    wall_ms: int
    rules: Rules
    alarms: Alarms[Alarm]
    topics: Topics = field(default_factory=NoTopics)
    known_matches: KnownMatches = field(default_factory=dict)  # computed before the turn; see consumer/expressions.py
    own_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by group: resource type GROUP
    records: list[Entry | InTransaction] = field(default_factory=list)
    answers: list[tuple[Ticket, Answer]] = field(default_factory=list)
    moves: list[tuple[str, Move]] = field(default_factory=list)  # state transitions, by id of the classic group
    member_moves: list[tuple[str, MemberMove]] = field(default_factory=list)  # by id of a consumer group's member
    share_moves: list[tuple[str, ShareMove]] = field(default_factory=list)  # by id of the share group
    unsettled_groups: dict[str, None] = field(default_factory=dict)  # share groups for which there is work to do

    def session_timeout_ms(self, group_id: str) -> int:
        """For members of a consumer group."""
        return int(self._own(group_id).get(SESSION_TIMEOUT, self.rules.consumer_session_timeout_ms))

    def heartbeat_interval_ms(self, group_id: str) -> int:
        """For members of a consumer group."""
        return int(self._own(group_id).get(HEARTBEAT_INTERVAL, self.rules.consumer_heartbeat_interval_ms))

    def share_session_timeout_ms(self, group_id: str) -> int:
        """For members of a share group."""
        return int(self._own(group_id).get(SHARE_SESSION_TIMEOUT, self.rules.share_session_timeout_ms))

    def share_heartbeat_interval_ms(self, group_id: str) -> int:
        """For members of a share group."""
        return int(self._own(group_id).get(SHARE_HEARTBEAT_INTERVAL, self.rules.share_heartbeat_interval_ms))

    def _own(self, group_id: str) -> Mapping[str, str]:
        return self.own_settings.get(group_id, {})

    def alarm(self, alarm: Alarm, after_ms: int) -> None:
        self.alarms.set(alarm, self.now + after_ms / 1000)

    def answer(self, ticket: Ticket | None, answer: Answer) -> None:
        """Answer a waiting request; None: no request is waiting."""
        if ticket is not None:
            self.answers.append((ticket, answer))
