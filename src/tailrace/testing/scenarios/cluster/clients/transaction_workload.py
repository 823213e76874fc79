"""A client that writes in transactions: some it commits, some it aborts, some it never ends.

With each it also commits an offset of a group of its own. By chance it dies in the midst of one, or stands still until
the coordinator has given up on it, and begins anew under its name; what it was before then tries to write once more.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from tailrace.testing.scenarios.cluster.clients.coordinator_client import GROUP_TYPE, CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.repeated_marker import repeat_marker
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.transactional_producer import (
    KIP_890,
    ProducerIdentity,
    ProtocolVersions,
    TransactionalProducer,
    TransactionFailed,
)
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.transaction_outcomes import ClientTransaction, TransactionOutcomes
from tailrace.testing.transaction_history import Outcome, Write
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest, OffsetFetchResponse

FETCH_VERSION: Final = 8
COMMITS: Final = 0.6
DIES: Final = 0.08
STANDS_STILL: Final = 0.05
STILL_SECONDS: Final = 2.5
COMES_LATE: Final = 0.3  # the marker of the transaction before


class TransactionWorkload:
    def __init__(
        self, router: Router, outcomes: TransactionOutcomes, topic: str, partitions: int, versions: ProtocolVersions
    ) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._outcomes = outcomes
        self._topic = topic
        self._partitions = partitions
        self._group = f"of {self.name}"
        self._wire = TransactionalProducer(router, topic, self._group, versions)
        self._coordinator = CoordinatorClient(router, self._group, GROUP_TYPE)
        self._offsets: list[int] = [-1]  # that the group may have: the last that is sure, and those after it
        self._number = 0
        self._ended = (
            ProducerIdentity(-1, -1),
            False,
        )  # as whom it goes on since its last transaction, and how that ended
        self._fresh = False  # it has a producer id that is good
        self.done = True
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            self.done = False
            if not self._fresh:
                old, sequences = self._wire.producer, dict(self._wire.sequences)
                await self._wire.init()
                self._fresh = True
                await self._haunt(old, sequences)
            await self._transact()
            self.done = True
            if self._rng.random() < 0.3:
                await self._look_at_offset()
            await asyncio.sleep(self._rng.random())

    async def _transact(self) -> None:
        self._number += 1
        one = self._outcomes.begin(f"{self.name} {self._number}")
        chosen = self._rng.sample(range(self._partitions), self._rng.randrange(1, self._partitions + 1))
        try:
            await self._write(one, chosen)
            await self._end(one)
        except TransactionFailed:
            self._fresh = False

    async def _write(self, one: ClientTransaction, chosen: list[int]) -> None:
        await self._wire.add(chosen)
        for partition in chosen:
            if self._rng.random() < DIES / 2:
                raise TransactionFailed("it died")
            value = f"{one.name} {partition}"
            one.writes.append(Write(str(partition), value))
            offset = await self._wire.write(partition, value)
            one.writes[-1] = Write(str(partition), value, offset)
            await self._repeat_marker(partition)
        await self._wire.commit_offset(self._number)

    async def _end(self, one: ClientTransaction) -> None:
        draw = self._rng.random()
        if draw < DIES:
            raise TransactionFailed("it died")
        if draw < DIES + STANDS_STILL:
            await asyncio.sleep(STILL_SECONDS)
        committed = self._rng.random() < COMMITS
        if committed:
            one.outcome = Outcome.UNKNOWN
            self._offsets.append(self._number)
        await self._wire.end(committed=committed)
        self._ended = self._wire.producer, committed
        if committed:
            one.outcome = Outcome.COMMITTED
            self._offsets = [self._number]

    async def _repeat_marker(self, partition: int) -> None:
        ended_as, committed = self._ended
        if self._wire.versions is KIP_890 and ended_as == self._wire.producer and self._rng.random() < COMES_LATE:
            await repeat_marker(self._router, self._topic, partition, ended_as.id, committed=committed)

    async def _haunt(self, old: ProducerIdentity, sequences: Mapping[int, int]) -> None:
        """What this client was before writes once more, now that another has taken its place."""
        if old.id < 0 or old == self._wire.producer or self._rng.random() < 0.5:
            return
        partition = self._rng.randrange(self._partitions)
        one = self._outcomes.begin(f"{self.name} {self._number} fenced")
        one.writes.append(Write(str(partition), one.name))
        code, offset = await self._wire.send(
            partition, self._wire.request(old, partition, sequences.get(partition, 0), one.name)
        )
        if code == 0:
            raise InvariantViolated(
                Invariant.FENCED, f"{old} wrote at {partition}@{offset} after {self._wire.producer} began"
            )

    async def _look_at_offset(self) -> None:
        expected = list(self._offsets)
        wanted = GroupTopicWanted(name=self._topic, partition_indexes=(0,))
        groups = (GroupWanted(group_id=self._group, topics=(wanted,)),)
        request = OffsetFetchRequest(groups=groups, require_stable=True)
        answer: OffsetFetchResponse | None = await self._coordinator.ask(request, FETCH_VERSION)
        if answer is None:
            return
        self._coordinator.told(answer.groups[0].error_code)
        found = answer.groups[0].topics[0].partitions[0] if answer.groups[0].error_code == 0 else None
        if found is not None and found.error_code == 0 and found.committed_offset not in expected:
            raise InvariantViolated(Invariant.OFFSETS, f"{self._group}: {found.committed_offset} is none of {expected}")
