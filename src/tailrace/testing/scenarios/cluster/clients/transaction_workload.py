"""A client that writes in transactions: it commits some, aborts some and leaves some open.

Each transaction also commits an offset of the client's own group. At random the client dies in the middle of a
transaction, or pauses until the transaction times out, and initializes again with the same transactional id. The
fenced producer that it was before then tries to write once more.
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
COMMIT_CHANCE: Final = 0.6
DEATH_CHANCE: Final = 0.08
PAUSE_CHANCE: Final = 0.05
PAUSE_SECONDS: Final = 2.5  # longer than the transaction timeout
REPEATED_MARKER_CHANCE: Final = 0.3


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
        self._producer = TransactionalProducer(router, topic, self._group, versions)
        self._coordinator = CoordinatorClient(router, self._group, GROUP_TYPE)
        # the offsets that the group may have: the last one known to be committed, and those of unknown outcome since
        self._offsets: list[int] = [-1]
        self._number = 0  # of the transaction
        # the producer's identity after its last transaction, and whether that was committed
        self._last_ended = ProducerIdentity(-1, -1), False
        self._is_initialized = False
        self.done = True
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            self.done = False
            if not self._is_initialized:
                old, sequences = self._producer.producer, dict(self._producer.sequences)
                await self._producer.init()
                self._is_initialized = True
                await self._write_as_fenced_producer(old, sequences)
            await self._run_transaction()
            self.done = True
            if self._rng.random() < 0.3:
                await self._check_committed_offset()
            await asyncio.sleep(self._rng.random())

    async def _run_transaction(self) -> None:
        self._number += 1
        transaction = self._outcomes.begin(f"{self.name} {self._number}")
        chosen = self._rng.sample(range(self._partitions), self._rng.randrange(1, self._partitions + 1))
        try:
            await self._write(transaction, chosen)
            await self._end(transaction)
        except TransactionFailed:
            self._is_initialized = False

    async def _write(self, transaction: ClientTransaction, chosen: list[int]) -> None:
        await self._producer.add(chosen)
        for partition in chosen:
            if self._rng.random() < DEATH_CHANCE / 2:
                raise TransactionFailed("the client died")
            value = f"{transaction.name} {partition}"
            transaction.writes.append(Write(str(partition), value))
            offset = await self._producer.write(partition, value)
            transaction.writes[-1] = Write(str(partition), value, offset)
            await self._repeat_marker(partition)
        await self._producer.commit_offset(self._number)

    async def _end(self, transaction: ClientTransaction) -> None:
        draw = self._rng.random()
        if draw < DEATH_CHANCE:
            raise TransactionFailed("the client died")
        if draw < DEATH_CHANCE + PAUSE_CHANCE:
            await asyncio.sleep(PAUSE_SECONDS)
        committed = self._rng.random() < COMMIT_CHANCE
        if committed:
            transaction.outcome = Outcome.UNKNOWN
            self._offsets.append(self._number)
        await self._producer.end(committed=committed)
        self._last_ended = self._producer.producer, committed
        if committed:
            transaction.outcome = Outcome.COMMITTED
            self._offsets = [self._number]

    async def _repeat_marker(self, partition: int) -> None:
        ended_as, committed = self._last_ended
        is_same = self._producer.versions is KIP_890 and ended_as == self._producer.producer
        if is_same and self._rng.random() < REPEATED_MARKER_CHANCE:
            await repeat_marker(self._router, self._topic, partition, ended_as.id, committed=committed)

    async def _write_as_fenced_producer(self, old: ProducerIdentity, sequences: Mapping[int, int]) -> None:
        """Write with the producer id and epoch that this client had before it initialized again."""
        if old.id < 0 or old == self._producer.producer or self._rng.random() < 0.5:
            return
        partition = self._rng.randrange(self._partitions)
        transaction = self._outcomes.begin(f"{self.name} {self._number} fenced")
        transaction.writes.append(Write(str(partition), transaction.name))
        request = self._producer.request(old, partition, sequences.get(partition, 0), transaction.name)
        code, offset = await self._producer.send(partition, request)
        if code == 0:
            raise InvariantViolated(
                Invariant.FENCED, f"{old} wrote at {partition}@{offset}, but is fenced by {self._producer.producer}"
            )

    async def _check_committed_offset(self) -> None:
        expected = list(self._offsets)
        wanted = GroupTopicWanted(name=self._topic, partition_indexes=(0,))
        groups = (GroupWanted(group_id=self._group, topics=(wanted,)),)
        request = OffsetFetchRequest(groups=groups, require_stable=True)
        answer: OffsetFetchResponse | None = await self._coordinator.call(request, FETCH_VERSION)
        if answer is None:
            return
        self._coordinator.check_error(answer.groups[0].error_code)
        found = answer.groups[0].topics[0].partitions[0] if answer.groups[0].error_code == 0 else None
        if found is not None and found.error_code == 0 and found.committed_offset not in expected:
            raise InvariantViolated(
                Invariant.OFFSETS, f"group {self._group!r} has offset {found.committed_offset}, not one of {expected}"
            )
