"""Delivery of transaction markers: each is sent to the leader of its partition until it is written.

At most one request per broker (also to this broker itself) is in flight; it carries all markers that have gathered
since the previous one. Leaders move and brokers die, so a marker that could not be written is sent again after a
backoff, to the leader at that time, without limit. A deleted partition needs no marker. Only a coordinator that serves
may send: when it is replaced its markers are dropped, and the next coordinator sends them all.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from tailrace.broker.coordination.coordinator import CoordinatorParts
from tailrace.broker.peers import Unreachable
from tailrace.broker.transactions.marker_writing import MarkerWriting
from tailrace.broker.transactions.partition_coordinator import TransactionPartitionCoordinator
from tailrace.model.faults import BrokerNotAvailable, CoordinatorFenced, Fault, StaleProducerEpoch
from tailrace.model.ids import NO_BROKER, NO_EPOCH, NO_ID, BrokerId, Epoch, PartitionName
from tailrace.model.limits import MARKS_PER_CALL_MAX
from tailrace.transactions.transactions import Transactions
from tailrace.transactions.turn import Markers, TransactionTurn
from tailrace.wire.messages.peers.write_markers import Marker, PartitionToMark

logger: Final = logging.getLogger(__name__)

BACKOFF_MIN_S: Final = 0.02
BACKOFF_MAX_S: Final = 1.0


class Order(NamedTuple):
    """One marker for one partition."""

    coordinator: TransactionPartitionCoordinator
    epoch: Epoch  # of the coordinator
    markers: Markers
    place: PartitionName
    tries: int = 0

    @property
    def is_pending(self) -> bool:
        """Whether the coordinator still waits for this marker."""
        return self.coordinator.awaits(self.epoch, self.markers, self.place)


class MarkerDelivery:
    def __init__(self, parts: CoordinatorParts, markers: MarkerWriting) -> None:
        self._hosted = parts.hosted
        self._leaders = parts.leaders
        self._background = parts.background
        self._markers = markers
        self._waiting: dict[BrokerId, list[Order]] = {}  # by leader; a key exists while `_serve` sends to it

    def send(self, coordinator: TransactionPartitionCoordinator, epoch: Epoch, markers: Markers) -> None:
        self._enqueue([Order(coordinator, epoch, markers, place) for place in markers.places])

    def _enqueue(self, orders: Sequence[Order]) -> None:
        """Queue each marker for the current leader of its partition."""
        deleted: list[Order] = []
        for order in orders:
            leader = self._leader_of(order.place)
            if leader == NO_BROKER and self._is_deleted(order.place):
                deleted.append(order)
            elif leader == NO_BROKER:
                self._retry_later([order])
            elif leader in self._waiting:
                self._waiting[leader].append(order)
            else:
                self._waiting[leader] = [order]
                self._background.spawn(self._serve(leader))
        if deleted:
            self._confirm(deleted)

    def _leader_of(self, place: PartitionName) -> BrokerId:
        topic = self._hosted.image.topics.get(place.topic)
        if topic is None or place.partition >= len(topic.partitions):
            return NO_BROKER
        return self._leaders.led_by(topic, place.partition)[0]

    def _is_deleted(self, place: PartitionName) -> bool:
        """Whether a partition was deleted. One that is merely unknown here was created a moment ago."""
        image = self._hosted.image
        topic = image.topics.get(place.topic)
        exists = topic is not None and place.partition < len(topic.partitions)
        return not exists and place.topic in image.removed.values()

    def _retry_later(self, orders: Sequence[Order]) -> None:
        """Enqueue markers again after a delay that grows with the number of tries."""
        by_delay: dict[float, list[Order]] = {}
        for order in orders:
            delay_s = min(BACKOFF_MAX_S, BACKOFF_MIN_S * 2 ** min(order.tries, 10))
            by_delay.setdefault(delay_s, []).append(order._replace(tries=order.tries + 1))
        for delay_s, some in by_delay.items():
            asyncio.get_running_loop().call_later(delay_s, self._retry, some)

    def _retry(self, orders: Sequence[Order]) -> None:
        if not self._background.stopping:
            self._enqueue([order for order in orders if order.is_pending])

    async def _serve(self, broker: BrokerId) -> None:
        """Send the markers queued for one broker, until the queue is empty."""
        while waiting := [order for order in self._waiting[broker] if order.is_pending]:
            orders, self._waiting[broker] = waiting[:MARKS_PER_CALL_MAX], waiting[MARKS_PER_CALL_MAX:]
            faults = await self._call(broker, orders)
            results = list(zip(orders, faults, strict=True))
            self._retry_later([order for order, fault in results if not (_is_done(fault) or _is_superseded(fault))])
            self._confirm([order for order, fault in results if _is_done(fault)])
        del self._waiting[broker]

    async def _call(self, broker: BrokerId, orders: Sequence[Order]) -> Sequence[Fault | None]:
        """The fault of each marker, or None."""
        try:
            answers = await self._markers.send(broker, [self._marker(order) for order in orders])
        except Unreachable as error:
            logger.info("cannot send transaction markers to broker %d, retrying: %s", broker, error)
            return [BrokerNotAvailable(str(error))] * len(orders)
        except Fault as fault:
            return [fault] * len(orders)
        return [fault for (fault,) in answers]

    def _marker(self, order: Order) -> Marker:
        topic = self._hosted.image.topics.get(order.place.topic)
        number, markers = order.place.partition, order.markers
        topic_id = NO_ID if topic is None else topic.id  # deleted a moment ago
        epoch = NO_EPOCH if topic is None else self._leaders.led_by(topic, number)[1]
        return Marker(
            producer_id=markers.producer.id,
            producer_epoch=markers.producer.epoch,
            coordinator_epoch=order.epoch,
            committed=markers.committed,
            transaction_version=markers.client_version,
            partitions=(PartitionToMark(topic_id=topic_id, partition=number, leader_epoch=epoch),),
        )

    def _confirm(self, orders: Sequence[Order]) -> None:
        """Report written markers to their machines: one turn for each, and none waits for the commit of another."""
        by_coordinator: dict[TransactionPartitionCoordinator, list[Order]] = {}
        for order in orders:
            if order.is_pending:
                by_coordinator.setdefault(order.coordinator, []).append(order)
        for coordinator, some in by_coordinator.items():
            self._background.spawn(_report(coordinator, some))


async def _report(coordinator: TransactionPartitionCoordinator, orders: Sequence[Order]) -> None:
    with suppress(Fault):  # another coordinator takes over, and sends all markers again
        await coordinator.act(partial(_marked, orders))


def _marked(orders: Sequence[Order], machine: Transactions, turn: TransactionTurn) -> None:
    for order in orders:
        machine.marked(order.markers, [order.place], turn)


def _is_done(fault: Fault | None) -> bool:
    """Written, or not needed: a producer whose epoch is higher there has nothing open in this one."""
    return fault is None or isinstance(fault, StaleProducerEpoch)


def _is_superseded(fault: Fault | None) -> bool:
    """A later coordinator has written there, and ends the transaction."""
    return isinstance(fault, CoordinatorFenced)
