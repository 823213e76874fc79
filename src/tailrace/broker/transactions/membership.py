"""TakePart between brokers: asks a transaction's coordinator whether partitions are part of it, and answers that."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from tailrace.broker.control.peer_requests import Handler
from tailrace.broker.coordination.coordinator import Coordinator
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.peers import Unreachable
from tailrace.broker.transactions.partition_coordinator import TransactionPartitionCoordinator
from tailrace.model.faults import (
    CoordinatorLoading,
    CoordinatorUnavailable,
    Fault,
    NotCoordinator,
    NotInTransaction,
    UnknownTopic,
)
from tailrace.model.ids import BrokerId, PartitionName
from tailrace.transactions.transaction import TRANSACTIONS_V2, Producer
from tailrace.wire.faults import error_of, fault_of
from tailrace.wire.messages.peers.take_part import PartitionTakingPart, TakePart, TakePartAnswer


class TransactionMembership:
    def __init__(
        self,
        coordinator: Coordinator[TransactionPartitionCoordinator],
        hosted: HostedPartitions,
        call_peer: Callable[[BrokerId, object], Awaitable[Any]],
    ) -> None:
        self._coordinator = coordinator
        self._hosted = hosted
        self._call_peer = call_peer

    # Asking

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[PartitionName], *, add: bool
    ) -> Mapping[PartitionName, Fault]:
        """See `Verifier.verify`."""
        request = TakePart(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            add=add,
            partitions=tuple(PartitionTakingPart(topic=topic, partition=number) for topic, number in partitions),
        )
        answer = await self._ask(request)
        if answer.error_code or len(answer.codes) != len(partitions):
            raise CoordinatorUnavailable(f"the coordinator of {transactional_id} failed: {answer.error_message}")
        faults = ((one, fault_of(code)) for one, code in zip(partitions, answer.codes, strict=True))
        return {one: fault for one, fault in faults if fault is not None}

    async def _ask(self, request: TakePart) -> TakePartAnswer:
        coordinator = await self._coordinator.find(request.transactional_id)
        if coordinator == self._hosted.me.broker:
            return await self.serve(coordinator, request)
        try:
            answer: TakePartAnswer = await self._call_peer(coordinator, request)
        except Unreachable as error:
            raise CoordinatorUnavailable(
                f"the coordinator of {request.transactional_id}, broker {coordinator}, is unreachable: {error}"
            ) from error
        return answer

    # Answering

    @property
    def handlers(self) -> Mapping[type, Handler]:
        return {TakePart: self.serve}

    async def serve(self, caller: BrokerId, request: TakePart) -> TakePartAnswer:
        """The result for each partition; raises a fault if this broker is not the coordinator, or not ready."""
        coordinator = self._coordinator.local(request.transactional_id)
        places = [PartitionName(one.topic, one.partition) for one in request.partitions]
        try:
            if request.add:
                _require_known(self._hosted, places)
            missing = await coordinator.when_free(
                request.transactional_id, lambda: _missing(coordinator, request, places)
            )
        except (NotCoordinator, CoordinatorLoading, CoordinatorUnavailable):
            raise
        except Fault as fault:
            return TakePartAnswer(codes=(error_of(fault),) * len(places))
        none = error_of(NotInTransaction(""))
        return TakePartAnswer(codes=tuple(none if one in missing else 0 for one in places))


def _require_known(hosted: HostedPartitions, places: Sequence[PartitionName]) -> None:
    """A coordinator that does not know a new topic yet could not distinguish it from a deleted one."""
    topics = hosted.image.topics
    for place in places:
        if place.topic not in topics or place.partition >= len(topics[place.topic].partitions):
            raise UnknownTopic(f"{place.topic}-{place.partition} is not known here")


async def _missing(
    coordinator: TransactionPartitionCoordinator, request: TakePart, places: Sequence[PartitionName]
) -> Sequence[PartitionName]:
    name, who = request.transactional_id, Producer(request.producer_id, request.producer_epoch)
    if not request.add:
        return await coordinator.ask(lambda machine: machine.missing(name, who, places))
    await coordinator.act(lambda machine, turn: machine.add(name, who, places, TRANSACTIONS_V2, turn))
    return ()
