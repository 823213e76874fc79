"""Incoming Raft messages, processed in the order of arrival.

When thousands of partitions lose their leader at once, thousands of messages arrive at once. They are processed in
slices of `PARTITIONS_PER_TURN_MAX`, so that the loop gets to its other work in between, above all to fetches: a
follower that does not fetch counts as dead.

Messages to a partition that is not hosted here yet are kept for `EARLY_KEPT_S`: its metadata may be on the way.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.model.ids import TopicPartition
from tailrace.model.limits import EARLY_MESSAGES_MAX, PARTITIONS_PER_TURN_MAX, RAFT_MESSAGES_GATHERED_MAX
from tailrace.ports import Clock
from tailrace.raft.messages import Message

EARLY_KEPT_S: Final = 5.0

Find = Callable[[TopicPartition], QuorumMember | None]


class RaftInbox:
    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock
        self._waiting: deque[tuple[TopicPartition, Message]] = deque()
        self._early: dict[TopicPartition, list[tuple[float, Message]]] = {}
        self._early_count = 0

    def take(self, messages: Sequence[tuple[TopicPartition, Message]]) -> None:
        if not self._waiting and len(messages) <= PARTITIONS_PER_TURN_MAX:
            for key, message in messages:
                self._deliver(key, message)
        elif len(self._waiting) < RAFT_MESSAGES_GATHERED_MAX:  # otherwise dropped: Raft repeats what matters
            if not self._waiting:
                asyncio.get_running_loop().call_soon(self._deliver_waiting)
            self._waiting += messages

    def _deliver_waiting(self) -> None:
        try:
            for _ in range(min(len(self._waiting), PARTITIONS_PER_TURN_MAX)):
                self._deliver(*self._waiting.popleft())
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._deliver_waiting)

    def _deliver(self, key: TopicPartition, message: Message) -> None:
        member = self._find(key)
        if member is not None:
            member.step(message)
        elif self._early_count < EARLY_MESSAGES_MAX:
            self._early.setdefault(key, []).append((self._clock.monotonic(), message))
            self._early_count += 1

    def opened(self, member: QuorumMember) -> None:
        """A partition was opened: deliver the messages that arrived for it before."""
        now = self._clock.monotonic()
        for at, message in self._early.pop(member.key, ()):
            self._early_count -= 1
            if now - at < EARLY_KEPT_S:
                member.step(message)

    def forget_old(self, now: float) -> None:
        for key, messages in list(self._early.items()):
            kept = [(at, message) for at, message in messages if now - at < EARLY_KEPT_S]
            self._early_count -= len(messages) - len(kept)
            if kept:
                self._early[key] = kept
            else:
                del self._early[key]

    def stop(self) -> None:
        self._waiting.clear()
