"""Verification of a transaction before a partition appends its first batch (KIP-890).

A transaction coordinator writes markers to the partitions that it knows to be part of the transaction. A batch that
reaches any other partition, late or by mistake, would start a transaction there that never ends and would block all
read_committed consumers. So a partition without an open transaction of the producer first asks the coordinator, which
either confirms that the partition is part of the transaction (clients that add partitions themselves) or adds it
(transactions v2, Produce 12 on).

The transaction may end between the answer and the append. So a `Guard` is taken before the coordinator is asked; a
marker of the producer or a leader change invalidates it. The batch is then refused, and the producer retries.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import Fault, InvalidBatch, Unverified
from tailrace.model.ids import Epoch, PartitionName
from tailrace.records.header import CONTROL_BIT, BatchHeader
from tailrace.transactions.transaction import Producer


class Verifier(Protocol):
    """Asks the coordinator of a transactional id, on whichever broker it is."""

    async def verify(
        self, transactional_id: str, producer: Producer, partitions: Sequence[PartitionName], *, add: bool
    ) -> Mapping[PartitionName, Fault]:
        """The partitions that are not part of the producer's transaction, each with its fault; empty if all are.

        `add` adds them to it. A `Fault` means that the coordinator could not be asked, so nothing is known. There are
        no retries: those are up to the caller.
        """


class Guard:
    """The permission to begin a producer's transaction here; a marker or a leader change invalidates it."""

    __slots__ = ("leader_epoch", "producer_epoch", "producer_id", "refused", "valid", "verified")

    def __init__(self, producer_id: int, producer_epoch: int, leader_epoch: Epoch) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.leader_epoch = leader_epoch
        self.valid = True  # no marker was written since
        self.verified = False  # the coordinator has confirmed the partition
        self.refused: Fault | None = None  # the coordinator has refused it, or could not be asked


class Guards:
    """The guards taken on one partition, and a callback for markers written there."""

    __slots__ = ("_taken", "on_marker")

    def __init__(self) -> None:
        self._taken: dict[int, list[Guard]] = {}  # by producer
        self.on_marker: Callable[[int, bool], None] | None = None  # called with producer id and whether it commits

    def take(self, producer_id: int, producer_epoch: int, leader_epoch: Epoch) -> Guard:
        guard = Guard(producer_id, producer_epoch, leader_epoch)
        self._taken.setdefault(producer_id, []).append(guard)
        return guard

    def give_back(self, guard: Guard) -> None:
        taken = self._taken[guard.producer_id]
        taken.remove(guard)
        if not taken:
            del self._taken[guard.producer_id]

    def invalidate(self, producer_id: int, committed: bool) -> None:
        """A marker of this producer was written."""
        for guard in self._taken.get(producer_id, ()):
            guard.valid = False
        if self.on_marker is not None:
            self.on_marker(producer_id, committed)


def is_in_transaction(producers: ProducerStates, producer_id: int, producer_epoch: int) -> bool:
    """Whether a producer has an open transaction in this epoch: it needs no verification then."""
    if producer_id not in producers.transactions.open:
        return False
    known = producers.get(producer_id)
    return known is not None and known.epoch == producer_epoch


def require_part_of_transaction(
    producers: ProducerStates, header: BatchHeader, guard: Guard | None, leader_epoch: Epoch
) -> None:
    """Raise the fault unless a client's transactional batch may be appended; control batches are always refused."""
    if header.attributes & CONTROL_BIT:
        raise InvalidBatch("only brokers write control batches")
    if guard is None:
        raise InvalidBatch("a transactional batch in a request without a transactional id")
    if header.producer_id < 0:
        raise InvalidBatch("a transactional batch without a producer id")
    if is_in_transaction(producers, header.producer_id, header.producer_epoch):
        return
    if (guard.producer_id, guard.producer_epoch) != (header.producer_id, header.producer_epoch):
        raise Unverified(f"request mixes producers; {header.producer_id} was not verified")
    if guard.refused is not None:
        raise guard.refused
    if not guard.verified or not guard.valid or guard.leader_epoch != leader_epoch:
        raise Unverified(f"the transaction of producer {header.producer_id} ended during its verification")
