"""Whether a transaction marker is to be written, fenced or ignored, by the state of its producer in this partition.

A transaction coordinator repeats a marker until it is acknowledged, so a late copy may arrive after the producer's next
transaction has begun. With transactions v2 (KIP-890) the coordinator raises the producer epoch at the end of every
transaction: a marker with the epoch of the producer's open transaction then belongs to an earlier one, and must not end
this one.
"""

from typing import Final

from tailrace.log.state.producers import ProducerStates
from tailrace.model.faults import CoordinatorFenced, StaleProducerEpoch

EPOCH_RAISED_SINCE: Final = 2  # the first transaction version that raises the producer epoch at every end


def marker_is_due(
    states: ProducerStates, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
) -> bool:
    """Whether the marker changes anything; a repeated one does not. Raises a fault when it comes too late."""
    producer = states.get(producer_id)
    if producer is None:
        return True
    if coordinator_epoch < producer.coordinator_epoch:
        raise CoordinatorFenced(
            f"Invalid coordinator epoch for producer {producer_id}: {coordinator_epoch} (zombie), "
            f"{producer.coordinator_epoch} (current)"
        )
    if producer_epoch != producer.epoch:
        if producer_epoch < producer.epoch:
            raise StaleProducerEpoch(
                f"Epoch of producer {producer_id} in the marker is {producer_epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}"
            )
        return True
    if producer_id not in states.transactions.open:
        return coordinator_epoch > producer.coordinator_epoch  # the marker records the new coordinator epoch
    if transaction_version >= EPOCH_RAISED_SINCE:
        raise StaleProducerEpoch(
            f"the marker of producer {producer_id} with epoch {producer_epoch} is late: the next transaction is open"
        )
    return True
