"""Whether a marker may be written: what a partition knows of its producer decides.

A coordinator sends a marker again until it is acknowledged, and after the next transaction has begun one may still be
on its way. Where the coordinator raises the epoch for each end of a transaction (v2, KIP-890), a marker of the epoch
that the producer writes in belongs to the transaction before: it must not touch this one.
"""

from typing import Final

from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import CoordinatorFenced, StaleProducerEpoch

FIRST_THAT_RAISES: Final = 2  # of the versions of transactions


def marker_is_due(
    states: ProducerStates, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
) -> bool:
    """Whether it would change anything: a repeated one would not. A fault says that it comes too late."""
    producer = states.get(producer_id)
    if producer is None:
        return True
    if coordinator_epoch < producer.coordinator_epoch:
        raise CoordinatorFenced(
            f"producer {producer_id} has had a marker of coordinator epoch {producer.coordinator_epoch}; "
            f"this one is of {coordinator_epoch}"
        )
    if producer_epoch != producer.epoch:
        if producer_epoch < producer.epoch:
            raise StaleProducerEpoch(f"producer {producer_id} has epoch {producer.epoch} by now, not {producer_epoch}")
        return True
    if producer_id not in states.transactions.open:
        return coordinator_epoch > producer.coordinator_epoch  # which is worth remembering
    if transaction_version >= FIRST_THAT_RAISES:
        raise StaleProducerEpoch(f"producer {producer_id} has begun its next transaction, in epoch {producer_epoch}")
    return True
