"""Clients that write to internal topics, end transactions there or delete records: coordinators are not affected."""

from typing import Any

from tailrace.model.topics import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.write_txn_markers import MarkerToWrite, TopicToMark, WriteTxnMarkersRequest
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.doors.kafka.transacted import Transacted

FEW: dict[str, Any] = {"transaction_state_log_num_partitions": 1, "offsets_topic_num_partitions": 1}


async def _producer(brokers: Brokers) -> Transacted:
    await brokers.make_topic("t", (1,))
    one = Transacted(lambda request, version: brokers.call(1, request, version))
    await one.begin()
    return one


async def _mark(brokers: Brokers, topic: str) -> int:
    place = TopicToMark(name=topic, partitions=(0,))
    marker = MarkerToWrite(producer_id=7, producer_epoch=0, committed=True, topics=(place,), coordinator_epoch=0)
    answer = await brokers.call(1, WriteTxnMarkersRequest(markers=(marker,)), 1)
    code: int = answer.markers[0].topics[0].partitions[0].error_code
    return code


@simulated(1, **FEW)
async def test_no_transaction_takes_in_where_transactions_are_kept(brokers: Brokers) -> None:
    one = await _producer(brokers)
    for topic in (TRANSACTIONS_TOPIC, OFFSETS_TOPIC, METADATA_TOPIC):
        assert await one.add({topic: [0], "t": [0]}) == [
            Error.TOPIC_AUTHORIZATION_FAILED,
            Error.OPERATION_NOT_ATTEMPTED,
        ]


@simulated(1, **FEW)
async def test_nor_does_one_that_leaves_it_to_the_broker(brokers: Brokers) -> None:
    one = await _producer(brokers)
    assert await one.write(TRANSACTIONS_TOPIC, "v", version=12) == Error.INVALID_TOPIC_EXCEPTION
    assert (await one.described()).topics == ()


@simulated(1, **FEW)
async def test_a_marker_where_transactions_are_kept_is_refused_and_stops_no_coordinator(brokers: Brokers) -> None:
    one = await _producer(brokers)
    for topic in (TRANSACTIONS_TOPIC, METADATA_TOPIC):
        assert await _mark(brokers, topic) in (Error.INVALID_TOPIC_EXCEPTION, Error.UNKNOWN_TOPIC_OR_PARTITION)
    brokers.kill(1)
    await brokers.start(1)
    await one.begin()


@simulated(1, **FEW)
async def test_nobody_cuts_off_what_coordinators_remember(brokers: Brokers) -> None:
    await _producer(brokers)
    trim = TopicToTrim(name=TRANSACTIONS_TOPIC, partitions=(PartitionToTrim(partition=0, offset=-1),))
    answer = await brokers.call(1, DeleteRecordsRequest(topics=(trim,), timeout_ms=5000), 2)
    assert answer.topics[0].partitions[0].error_code == Error.INVALID_TOPIC_EXCEPTION
