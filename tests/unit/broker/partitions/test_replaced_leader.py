"""How a leader that was replaced, and does not know it yet, answers producers."""

import pytest

from tailrace.broker.partitions.partition import ACKS_ALL, PIPELINE_MAX_S
from tailrace.log.log import Appended
from tailrace.model.faults import NotLeader, OutOfOrderSequence
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tests.unit.broker.simulated import Brokers, simulated

PRODUCER_ID = 7


def append(brokers: Brokers, broker: int, sequence: int) -> Appended:
    record = NewRecord(value=b"%d" % sequence, timestamp=1)
    batch = memoryview(build_batch([record], producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence))
    appended: Appended = brokers.within(broker, lambda: brokers.replica(broker, "t").append(batch, ACKS_ALL))
    return appended


@simulated()
async def test_a_sequence_is_out_of_order_only_at_a_leader_that_hears_its_quorum(brokers: Brokers) -> None:
    """The next leader may have taken the batches between. OUT_OF_ORDER_SEQUENCE_NUMBER would end the producer."""
    await brokers.make_topic("t", (2, 1, 3))
    append(brokers, 2, 0)
    await brokers.elapse(PIPELINE_MAX_S)
    with pytest.raises(OutOfOrderSequence):
        append(brokers, 2, 2)
    brokers.machine(2).pause()
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in (1, 3)))
    successor = next(one for one in (1, 3) if brokers.replica(one, "t").leads)
    append(brokers, successor, 1)
    brokers.machine(2).resume()
    assert brokers.replica(2, "t").leads, "it does not know yet"
    with pytest.raises(NotLeader, match="lost contact with the majority"):
        append(brokers, 2, 2)
    assert not append(brokers, successor, 2).duplicate
