"""A limit on how many partitions of this broker are candidates at the same time.

When a broker dies, or this one was paused, thousands of partitions want to start an election at the same moment. If all
did, the votes would arrive after the election timeouts, all would start over, and no election would ever succeed. So
at most `ELECTIONS_AT_ONCE_MAX` are candidates at once; the others wait until those elections are decided or have taken
`SHARE_S`. The metadata partition never waits; nor does any other while there are few, which is the usual case.
"""

import asyncio
from typing import Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.model.limits import ELECTIONS_AT_ONCE_MAX, PARTITIONS_PER_TURN_MAX
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.ports import Clock
from tailrace.raft.events import Event
from tailrace.raft.replica import Role

CHECK_S: Final = 0.005  # while partitions wait
SHARE_S: Final = 0.5  # after this long an undecided election no longer counts: its other voters may be down
CANDIDATE_ROLES: Final = (Role.PROSPECTIVE, Role.CANDIDATE)


class ElectionLimit:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[QuorumMember, Event] = {}
        self._candidates: dict[QuorumMember, float] = {}  # since when
        self._started = 0  # elections, in this turn of the loop
        self._timer: asyncio.TimerHandle | None = None

    def step_in_turn(self, member: QuorumMember, event: Event) -> None:
        """Feed a partition an event at which it may become a candidate: at once, or when it is its turn."""
        if member.key.topic_id == METADATA_TOPIC_ID:
            member.step(event)
        elif self._waiting or not self._has_room():
            self._waiting[member] = event
            self._schedule()
        else:
            self._start(member, event)

    def forget(self, member: QuorumMember) -> None:
        self._waiting.pop(member, None)
        self._candidates.pop(member, None)

    def stop(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _has_room(self) -> bool:
        return self._started < PARTITIONS_PER_TURN_MAX and len(self._candidates) < ELECTIONS_AT_ONCE_MAX

    def _start(self, member: QuorumMember, event: Event) -> None:
        if self._started == 0:
            asyncio.get_running_loop().call_soon(self._turn_ended)
        self._started += 1
        member.step(event)
        if member.replica.role in CANDIDATE_ROLES:
            self._candidates[member] = self._clock.monotonic()
            self._schedule()

    def _turn_ended(self) -> None:
        self._started = 0

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(CHECK_S, self._start_waiting)

    def _start_waiting(self) -> None:
        self._timer = None
        since = self._clock.monotonic() - SHARE_S
        for member, at in list(self._candidates.items()):
            if at < since or member.replica.role not in CANDIDATE_ROLES:
                del self._candidates[member]
        while self._waiting and self._has_room():
            member = next(iter(self._waiting))
            self._start(member, self._waiting.pop(member))
        if self._waiting or self._candidates:
            self._schedule()
