"""What clients were told of a partition's history, held against it as soon as it reaches that far.

A producer was told where its batch stands, with acks=all; a reader was given batches. Both must be what is committed at
that offset, once and for all. What a broker says with acks=1 is no promise beyond its own leadership, and no claim.
"""

from collections import deque
from typing import NamedTuple

from tailrace.model.ids import TopicPartition
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


class Claim(NamedTuple):
    invariant: Invariant  # that is broken when it does not hold
    base: int
    crc: int  # of the batch, as its header says
    who: str


class Claims:
    def __init__(self, histories: CommittedHistories) -> None:
        self._histories = histories
        self._open: dict[TopicPartition, deque[Claim]] = {}
        self.settled = 0

    def acknowledged(self, key: TopicPartition, base: int, crc: int, who: str) -> None:
        self._claim(key, Claim(Invariant.NOTHING_LOST, base, crc, who))

    def read(self, key: TopicPartition, base: int, crc: int, who: str) -> None:
        self._claim(key, Claim(Invariant.ONE_VALUE, base, crc, who))

    def settle(self, key: TopicPartition) -> None:
        """Look at the claims that the history covers by now."""
        waiting = self._open.get(key)
        if not waiting:
            return
        end = self._histories.of(key).end
        for _ in range(len(waiting)):
            claim = waiting.popleft()
            if claim.base >= end:
                waiting.append(claim)
            else:
                self._check(key, claim)

    def open(self, key: TopicPartition) -> int:
        """How many lie above all that is committed."""
        self.settle(key)
        return len(self._open.get(key, ()))

    def check_all_settled(self, key: TopicPartition) -> None:
        if self.open(key):
            claim = self._open[key][0]
            raise InvariantViolated(
                claim.invariant, f"{key} ends at {self._histories.of(key).end}: {claim.base}, {claim.who}"
            )

    def _claim(self, key: TopicPartition, claim: Claim) -> None:
        if claim.base < self._histories.of(key).end:
            self._check(key, claim)
        else:
            self._open.setdefault(key, deque()).append(claim)

    def _check(self, key: TopicPartition, claim: Claim) -> None:
        self.settled += 1
        found = self._histories.of(key).at(claim.base)
        if found is not None and (found.base, found.crc) != (claim.base, claim.crc):
            raise InvariantViolated(
                claim.invariant, f"{key} at {claim.base}: {claim.who} has {claim.crc:08x}, committed is ({found})"
            )
