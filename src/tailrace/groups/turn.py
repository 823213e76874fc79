"""One turn of the machine: when it is, which rules hold, and what comes of it.

The shell appends `records` and replays them, and only when they are committed gives `answers`. Whoever was parked with
a ticket is answered in some later turn, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tailrace.groups.alarms import Alarm
from tailrace.groups.consumer.expressions import Tried
from tailrace.groups.consumer.states import Taken
from tailrace.groups.records import Entry
from tailrace.groups.requests import Answer, Ticket
from tailrace.groups.states import Move
from tailrace.groups.topics import NoTopics, Topics
from tailrace.model.alarms import Alarms
from tailrace.model.frozen import frozen
from tailrace.model.group_settings import HEARTBEAT_INTERVAL, SESSION_TIMEOUT
from tailrace.model.proposal import InTransaction


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
    assignors: tuple[str, ...] = ("uniform", "range")  # the first is taken where nobody has a wish
    may_upgrade: bool = True  # a classic group, to a consumer group
    may_downgrade: bool = True


@dataclass(slots=True, kw_only=True)
class GroupTurn:
    now: float  # seconds of a clock that never goes back
    wall_ms: int
    rules: Rules
    alarms: Alarms[Alarm]
    topics: Topics = field(default_factory=NoTopics)
    tried: Tried = field(default_factory=dict)  # what expressions were tried on before the turn
    own_settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of groups that have any
    records: list[Entry | InTransaction] = field(default_factory=list)
    answers: list[tuple[Ticket, Answer]] = field(default_factory=list)
    moves: list[tuple[str, Move]] = field(default_factory=list)  # of which group
    steps: list[tuple[str, Taken]] = field(default_factory=list)  # of which member of a consumer group

    def session_timeout_ms(self, group_id: str) -> int:
        """Of members of a consumer group."""
        return int(self._own(group_id).get(SESSION_TIMEOUT, self.rules.consumer_session_timeout_ms))

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return int(self._own(group_id).get(HEARTBEAT_INTERVAL, self.rules.consumer_heartbeat_interval_ms))

    def _own(self, group_id: str) -> Mapping[str, str]:
        return self.own_settings.get(group_id, {})

    def alarm(self, alarm: Alarm, after_ms: int) -> None:
        self.alarms.set(alarm, self.now + after_ms / 1000)

    def answer(self, ticket: Ticket | None, answer: Answer) -> None:
        """Answer a ticket; where there is none nobody waits."""
        if ticket is not None:
            self.answers.append((ticket, answer))
