"""The transaction coordinator of this broker: a state machine for each partition of `__transaction_state` it leads."""

from collections.abc import Coroutine, Sequence
from typing import Any

from tailrace.broker.control.producer_ids import ProducerIds
from tailrace.broker.coordination.coordinator import Coordinator, CoordinatorParts, StateTopic
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Peers
from tailrace.broker.timers import sleep_then_read
from tailrace.broker.transactions.marker_delivery import MarkerDelivery
from tailrace.broker.transactions.marker_writing import MarkerWriting
from tailrace.broker.transactions.membership import TransactionMembership
from tailrace.broker.transactions.partition_coordinator import TransactionPartitionCoordinator
from tailrace.model.faults import ConcurrentTransactions
from tailrace.model.topics import TRANSACTIONS_TOPIC
from tailrace.transactions.transaction import NOTHING, Producer
from tailrace.transactions.turn import Rules


class TransactionCoordinator(Coordinator[TransactionPartitionCoordinator]):
    def __init__(
        self, parts: CoordinatorParts, producer_ids: ProducerIds, markers: MarkerWriting, peers: Peers
    ) -> None:
        settings = parts.settings
        partitions = settings.transaction_state_log_num_partitions
        replicas = settings.transaction_state_log_replication_factor
        super().__init__(
            parts, StateTopic("transactional id", TRANSACTIONS_TOPIC, partitions, replicas), self._new_coordinator
        )
        self._rules = Rules(
            max_timeout_ms=settings.transaction_max_timeout_ms,
            expiration_ms=settings.transactional_id_expiration_ms,
        )
        self._producer_ids = producer_ids
        self._delivery = MarkerDelivery(parts, markers)
        self.membership = TransactionMembership(self, parts.hosted, peers.call)

    def _new_coordinator(self, partition: Partition) -> TransactionPartitionCoordinator:
        return TransactionPartitionCoordinator(
            partition, self._rules, self._parts.ports, self._parts.background.spawn, self._delivery.send, self._level
        )

    def _level(self) -> int:
        """The level of metadata.version in force, at which records are written."""
        return self._parts.hosted.image.level

    async def init(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Producer:
        """InitProducerId: assign a producer id and epoch to a transactional id."""
        coordinator = self.local(transactional_id)
        new_id = await self._new_id(coordinator, transactional_id)
        given = await coordinator.act(
            lambda machine, turn: machine.init(transactional_id, timeout_ms, expected, new_id, turn)
        )
        if given is None:
            raise ConcurrentTransactions(f"the open transaction of {transactional_id} is being aborted")
        return given

    async def end(self, transactional_id: str, who: Producer, version: int, *, committed: bool, link: int) -> Producer:
        """EndTxn: commit or abort a transaction; returns the producer id and epoch to use from now on."""
        coordinator = self.local(transactional_id)
        new_id = await self._new_id(coordinator, transactional_id)
        return await coordinator.act(
            lambda machine, turn: machine.end(transactional_id, who, committed, version, new_id, turn, link)
        )

    async def _new_id(self, coordinator: TransactionPartitionCoordinator, transactional_id: str) -> int:
        """A machine cannot wait for a producer id, so one that it will need is allocated before the turn."""
        return await self._producer_ids.take() if coordinator.needs_id(transactional_id) else NOTHING

    def background_work(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [self.expire_ids(), *super().background_work()]

    async def expire_ids(self) -> None:
        """Remove expired transactional ids periodically, until cancelled."""
        while True:
            await sleep_then_read(min(self._parts.settings.transaction_remove_expired_interval_ms / 1000, 86_400.0))
            for coordinator in self.local_coordinators:
                await coordinator.expire()
