"""What a partition asks before it takes the first batch of a transaction (KIP-890).

A transaction's coordinator writes markers to the partitions that it knows to take part. A batch that reaches any other
partition, late or by mistake, would stay open there for ever and hold up every reader of committed records. So a
partition that has no open transaction of the producer asks the coordinator first, which either confirms that the
partition takes part (clients that add partitions themselves) or adds it (clients of transactions v2, Produce 12 on).

Between the answer and the append the transaction may end. A `Guard` is taken before the question; any marker of the
producer that is written meanwhile makes it worthless, as does another leader: the batch is refused then, and the
producer asks again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import Fault, InvalidBatch, Unverified
from tailrace.model.ids import Epoch, PartitionName
from tailrace.records.header import CONTROL_BIT, BatchHeader


class Verifier(Protocol):
    """Whoever can ask the coordinator of a transactional id, wherever that is."""

    async def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[PartitionName],
        *,
        add: bool,
    ) -> Mapping[PartitionName, Fault]:
        """Which of these are no part of the producer's transaction, and why; none: all of them are.

        `add` makes them part of it. A `Fault` says that nobody could be asked; nothing is known then. It is asked once:
        whether to ask again is the caller's to decide.
        """


class Guard:
    """The right to begin a producer's transaction on a partition, while nothing comes between."""

    __slots__ = ("leader_epoch", "producer_epoch", "producer_id", "refused", "valid", "verified")

    def __init__(self, producer_id: int, producer_epoch: int, leader_epoch: Epoch) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.leader_epoch = leader_epoch
        self.valid = True  # nothing has come between
        self.verified = False  # the coordinator has said yes
        self.refused: Fault | None = None  # it has said no, or could not be asked


class Guards:
    """Those that are taken on one partition; and who else wants to hear of markers there."""

    __slots__ = ("_taken", "on_marker")

    def __init__(self) -> None:
        self._taken: dict[int, list[Guard]] = {}  # by producer
        self.on_marker: Callable[[int, bool], None] | None = None  # whose it is, and whether it commits

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
        """A marker of this producer is written."""
        for guard in self._taken.get(producer_id, ()):
            guard.valid = False
        if self.on_marker is not None:
            self.on_marker(producer_id, committed)


def is_in_transaction(producers: ProducerStates, producer_id: int, producer_epoch: int) -> bool:
    """Whether a producer has a transaction open, in this epoch: nobody need be asked then."""
    if producer_id not in producers.transactions.open:
        return False
    known = producers.get(producer_id)
    return known is not None and known.epoch == producer_epoch


def require_part_of_transaction(
    producers: ProducerStates, header: BatchHeader, guard: Guard | None, leader_epoch: Epoch
) -> None:
    """Whether a client's batch that is no plain one may be appended."""
    if header.attributes & CONTROL_BIT:
        raise InvalidBatch("control batches are written by brokers only")
    if guard is None:
        raise InvalidBatch("a transactional batch in a request without a transactional id")
    if header.producer_id < 0:
        raise InvalidBatch("a transactional batch without a producer id")
    if is_in_transaction(producers, header.producer_id, header.producer_epoch):
        return
    if (guard.producer_id, guard.producer_epoch) != (header.producer_id, header.producer_epoch):
        raise Unverified(f"nobody was asked for producer {header.producer_id}: the request has another's batch before")
    if guard.refused is not None:
        raise guard.refused
    if not guard.verified or not guard.valid or guard.leader_epoch != leader_epoch:
        raise Unverified(f"the transaction of producer {header.producer_id} has ended while it was asked for")
