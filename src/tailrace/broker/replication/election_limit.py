"""How many partitions of this broker stand for election at the same time.

When a broker dies, or this one stood still for a while, thousands of partitions want to stand in the same moment. Were
they let, the answers would come later than anybody waits for them, all would stand again, and so on for ever. So only
so many stand at once; the others wait until those are decided, or have had their share of time. The metadata waits for
nobody. Nor does anybody while there are few, which is the usual case.
"""

import asyncio
from typing import Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.model.limits import ELECTIONS_AT_ONCE_MAX, PARTITIONS_PER_TURN_MAX
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.ports import Clock
from tailrace.raft.events import Event
from tailrace.raft.replica import Role

LOOK_S: Final = 0.005  # while some wait
SHARE_S: Final = 0.5  # for so long an election counts that is not decided: its other voters may be gone
STANDING: Final = (Role.PROSPECTIVE, Role.CANDIDATE)


class ElectionLimit:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[QuorumMember, Event] = {}
        self._standing: dict[QuorumMember, float] = {}  # since when
        self._taken = 0  # in this turn of the loop
        self._timer: asyncio.TimerHandle | None = None

    def let(self, member: QuorumMember, event: Event) -> None:
        """Give a partition an event over which it may stand: at once, or when it is its turn."""
        if member.key.topic_id == METADATA_TOPIC_ID:
            member.step(event)
        elif self._waiting or not self._has_room():
            self._waiting[member] = event
            self._go_on_soon()
        else:
            self._take(member, event)

    def forget(self, member: QuorumMember) -> None:
        self._waiting.pop(member, None)
        self._standing.pop(member, None)

    def stop(self) -> None:
        self._waiting.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _has_room(self) -> bool:
        return self._taken < PARTITIONS_PER_TURN_MAX and len(self._standing) < ELECTIONS_AT_ONCE_MAX

    def _take(self, member: QuorumMember, event: Event) -> None:
        if self._taken == 0:
            asyncio.get_running_loop().call_soon(self._turn_over)
        self._taken += 1
        member.step(event)
        if member.replica.role in STANDING:
            self._standing[member] = self._clock.monotonic()
            self._go_on_soon()

    def _turn_over(self) -> None:
        self._taken = 0

    def _go_on_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._go_on)

    def _go_on(self) -> None:
        self._timer = None
        since = self._clock.monotonic() - SHARE_S
        for member, at in list(self._standing.items()):
            if at < since or member.replica.role not in STANDING:
                del self._standing[member]
        while self._waiting and self._has_room():
            member = next(iter(self._waiting))
            self._take(member, self._waiting.pop(member))
        if self._waiting or self._standing:
            self._go_on_soon()
