"""What brokers told clients about a partition, compared with its committed history as soon as that reaches so far.

A producer with acks=all was told the offset of its batch; a consumer was given batches. Both must be what is committed
at that offset. A response to acks=1 is no claim: it promises nothing beyond the leader's own term.
"""

from collections import deque
from typing import NamedTuple

from tailrace.model.ids import TopicPartition
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


class Claim(NamedTuple):
    invariant: Invariant  # violated if the claim does not hold
    base: int
    crc: int  # in the header of the batch
    client: str


class Claims:
    def __init__(self, histories: CommittedHistories) -> None:
        self._histories = histories
        self._open: dict[TopicPartition, deque[Claim]] = {}
        self.settled = 0

    def acknowledged(self, key: TopicPartition, base: int, crc: int, client: str) -> None:
        self._add(key, Claim(Invariant.NOTHING_LOST, base, crc, client))

    def read(self, key: TopicPartition, base: int, crc: int, client: str) -> None:
        self._add(key, Claim(Invariant.ONE_VALUE, base, crc, client))

    def settle(self, key: TopicPartition) -> None:
        """Check the claims that the committed history covers by now."""
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
        """How many claims are above the committed history."""
        self.settle(key)
        return len(self._open.get(key, ()))

    def check_all_settled(self, key: TopicPartition) -> None:
        if self.open(key):
            claim = self._open[key][0]
            raise InvariantViolated(
                claim.invariant,
                f"{claim.client} was told of offset {claim.base} of {key}, which ends at {self._histories.of(key).end}",
            )

    def _add(self, key: TopicPartition, claim: Claim) -> None:
        if claim.base < self._histories.of(key).end:
            self._check(key, claim)
        else:
            self._open.setdefault(key, deque()).append(claim)

    def _check(self, key: TopicPartition, claim: Claim) -> None:
        self.settled += 1
        found = self._histories.of(key).at(claim.base)
        if found is not None and (found.base, found.crc) != (claim.base, claim.crc):
            raise InvariantViolated(
                claim.invariant,
                f"{key} at {claim.base}: {claim.client} was told of checksum {claim.crc:08x}, committed is ({found})",
            )
