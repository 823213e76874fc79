"""Verification of a transaction's first batch by its coordinator (KIP-890); tests decide what it answers, and when."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any

import pytest

from tailrace.broker.peers import Unreachable
from tailrace.model.faults import CoordinatorLoading, InvalidRequest, NotCoordinator, NotLeader
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.records.opened import batches, open_batch
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.produce import TopicToProduce
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnPartitionToCommit, TxnTopicToCommit
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, serving, with_broker
from tests.unit.doors.kafka.transacting import (
    MY_TRANSACTIONS,
    Oracle,
    Refuses,
    latest,
    look,
    mark,
    oracle_for,
    produce,
    send,
)


@with_broker()
async def test_it_is_asked_once_a_transaction_for_all_partitions_of_a_request(served: Served) -> None:
    await served.make_topic("t", 3)
    oracle = oracle_for(served)
    await send(served, "a", partitions=(0, 2))
    await send(served, "b", sequence=1, partitions=(0, 2))
    assert oracle.asked == [(("t", 0), ("t", 2))]
    await mark(served)
    await send(served, "c", sequence=2, partitions=(0, 2))
    assert oracle.asked[1:] == [(("t", 0),)]
    assert oracle.added == []


@with_broker()
async def test_clients_of_transactions_v2_have_partitions_added(served: Served) -> None:
    await served.make_topic("t")
    oracle = oracle_for(served)
    await send(served, "a", version=12)
    assert oracle.added == [("t", 0)]


@pytest.mark.parametrize(
    ("code", "version", "error"),
    [
        (Error.INVALID_TXN_STATE, 11, Error.INVALID_TXN_STATE),
        (Error.PRODUCER_FENCED, 11, Error.INVALID_PRODUCER_EPOCH),
        (Error.INVALID_PRODUCER_ID_MAPPING, 11, Error.INVALID_PRODUCER_ID_MAPPING),
        (Error.TRANSACTION_ABORTABLE, 10, Error.INVALID_TXN_STATE),
        (Error.TRANSACTION_ABORTABLE, 11, Error.TRANSACTION_ABORTABLE),
        (Error.NOT_COORDINATOR, 11, Error.NOT_ENOUGH_REPLICAS),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, 11, Error.NOT_ENOUGH_REPLICAS),
        (Error.NOT_LEADER_OR_FOLLOWER, 11, Error.NOT_ENOUGH_REPLICAS),
    ],
)
def test_what_it_refuses_is_not_appended(tmp_path: Any, code: Error, version: int, error: Error) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            oracle_for(served).codes = [code]
            assert await send(served, "a", version=version) == (error, -1)
            assert await latest(served, isolation=0) == 0
            assert await send(served, "a", version=version) == (Error.NONE, 0)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (NotCoordinator("another one is"), Error.NOT_ENOUGH_REPLICAS),
        (CoordinatorLoading("wait"), Error.NOT_ENOUGH_REPLICAS),
        (NotLeader("another one does"), Error.NOT_ENOUGH_REPLICAS),
        (Unreachable("it is gone"), Error.NOT_ENOUGH_REPLICAS),
        (InvalidRequest("never"), Error.INVALID_REQUEST),
    ],
)
def test_when_it_cannot_be_asked_the_producer_tries_again(tmp_path: Any, fault: Exception, error: Error) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            served.node.services.writer.verifier = Refuses(fault)
            assert await send(served, "a") == (error, -1)
            assert await latest(served, isolation=0) == 0

    asyncio.run(run())


@with_broker()
async def test_it_is_asked_again_while_it_ends_the_transaction_before(served: Served) -> None:
    await served.make_topic("t")
    oracle = oracle_for(served)
    oracle.codes = [Error.CONCURRENT_TRANSACTIONS] * 3
    assert await send(served, "a", version=12) == (Error.NONE, 0)
    assert len(oracle.asked) == 4
    oracle.codes = [Error.CONCURRENT_TRANSACTIONS] * 100
    await mark(served)
    assert await send(served, "b", sequence=1, version=12) == (Error.NOT_ENOUGH_REPLICAS, -1)
    assert await latest(served, isolation=0) == 2


async def marked_meanwhile(
    served: Served, oracle: Oracle, request: object, version: int, marker: Awaitable[object]
) -> int:
    """Send a request, and write a marker while the coordinator is being asked about it; the error of its partition."""
    oracle.open.clear()
    waiting = served.client.send(request, version)
    await until(lambda: bool(oracle.asked))
    await marker
    oracle.open.set()
    answer = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    code: int = answer.topics[0].partitions[0].error_code
    return code


@with_broker()
async def test_a_marker_between_the_answer_and_the_append_refuses_the_batch(served: Served) -> None:
    """The abort marker is written before the coordinator's positive answer arrives: the batch would hang forever."""
    await served.make_topic("t")
    oracle, partition = oracle_for(served), served.node.hosted.find("t", 0)
    marker = partition.write_marker(7, 0, 0, False)
    assert await marked_meanwhile(served, oracle, produce("a"), 11, marker) == Error.NOT_ENOUGH_REPLICAS
    assert (partition.log.end, partition.last_stable) == (1, 1)
    assert await send(served, "a") == (Error.NONE, 1)


@with_broker()
async def test_of_transactions_v2_it_is_asked_once_more_when_a_marker_comes_between(served: Served) -> None:
    """The marker ends the previous transaction. The producer's epoch shows that the batch belongs to the next one."""
    await served.make_topic("t")
    oracle, marker = oracle_for(served), served.node.hosted.find("t", 0).write_marker(7, 0, 0, True)
    assert await marked_meanwhile(served, oracle, produce("a", epoch=1), 12, marker) == Error.NONE
    assert len(oracle.asked) == 2


def offset_of_group() -> TxnOffsetCommitRequest:
    one = TxnPartitionToCommit(partition=0, committed_offset=5, committed_metadata="")
    return TxnOffsetCommitRequest(
        transactional_id=MY_TRANSACTIONS,
        group_id="g",
        producer_id=7,
        producer_epoch=1,
        topics=(TxnTopicToCommit(name="t", partitions=(one,)),),
    )


@with_broker(offsets_topic_num_partitions=1)
async def test_of_transactions_v2_it_is_asked_once_more_for_offsets_too(served: Served) -> None:
    await served.make_topic("t")
    await served.call(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 6)
    await until(
        lambda: (
            OFFSETS_TOPIC in served.node.hosted.image.topics
            and bool(served.node.coordinators.groups.local_coordinators)
        )
    )
    oracle = oracle_for(served)
    marker = served.node.hosted.find(OFFSETS_TOPIC, 0).write_marker(7, 1, 0, True, transaction_version=2)
    assert await marked_meanwhile(served, oracle, offset_of_group(), 5, marker) == Error.NONE
    assert len(oracle.asked) == 2


@with_broker()
async def test_of_transactions_v2_a_late_batch_is_refused_by_its_epoch(served: Served) -> None:
    await served.make_topic("t")
    oracle, partition = oracle_for(served), served.node.hosted.find("t", 0)
    oracle.codes = [Error.NONE, Error.INVALID_PRODUCER_EPOCH]
    marker = partition.write_marker(7, 0, 0, False)
    assert await marked_meanwhile(served, oracle, produce("a"), 12, marker) == Error.INVALID_PRODUCER_EPOCH
    assert partition.log.end == 1


@with_broker()
async def test_a_marker_of_another_producer_changes_nothing(served: Served) -> None:
    await served.make_topic("t")
    oracle, marker = oracle_for(served), served.node.hosted.find("t", 0).write_marker(8, 0, 0, False)
    assert await marked_meanwhile(served, oracle, produce("a"), 11, marker) == Error.NONE


@with_broker()
async def test_batches_that_come_meanwhile_are_taken_in_their_order(served: Served) -> None:
    await served.make_topic("t", 2)
    oracle = oracle_for(served)
    oracle.open.clear()
    requests = [produce(str(number), sequence=number) for number in range(5)]
    waiting = [served.client.send(request, 11) for request in requests]
    await until(lambda: bool(oracle.asked))
    oracle.open.set()
    answers = await asyncio.wait_for(asyncio.gather(*waiting), ANSWER_MAX_S)
    assert [one.topics[0].partitions[0].base_offset for one in answers] == [0, 1, 2, 3, 4]
    seen = await look(served, isolation=0)
    assert [open_batch(batch)[0].value for batch, _ in batches(seen.records)] == [b"0", b"1", b"2", b"3", b"4"]
    assert len(oracle.asked) == 1


@with_broker()
async def test_a_client_that_leaves_meanwhile_leaves_no_guard(served: Served) -> None:
    await served.make_topic("t")
    oracle = oracle_for(served)
    oracle.open.clear()
    other = await type(served.client).connect(served.node.ports.net, "127.0.0.1", served.door.port)
    other.send(produce("a"), 11)
    await until(lambda: bool(oracle.asked))
    other.close()
    oracle.open.set()
    partition = served.node.hosted.find("t", 0)
    await until(lambda: not partition.guards._taken)
    assert partition.log.end == 1  # what was begun is carried to its end


@with_broker()
async def test_a_transactional_batch_names_its_producer(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    assert await send(served, "a", producer=-1) == (Error.INVALID_RECORD, -1)
    assert await send(served, "a", sequence=-1) == (Error.INVALID_RECORD, -1)
    assert await latest(served, isolation=0) == 0


@with_broker()
async def test_a_partition_that_is_named_twice_takes_the_batch_of_the_producer_that_was_asked_for(
    served: Served,
) -> None:
    """The batch of the other producer would hang forever: no coordinator has its partition in a transaction."""
    await served.make_topic("t")
    oracle_for(served)
    for other in (produce("another's", producer=8), produce("another's", epoch=1)):
        mine = produce("mine")
        both = mine.topics[0].partitions + other.topics[0].partitions
        request = replace(mine, topics=(TopicToProduce(name="t", partitions=both),))
        answer = await served.call(request, 11)
        codes = [one.error_code for one in answer.topics[0].partitions]
        assert codes == [Error.NONE, Error.NOT_ENOUGH_REPLICAS]
    assert list(served.node.hosted.find("t", 0).log.producers.transactions.open) == [7]


@with_broker()
async def test_what_comes_behind_a_refused_batch_is_refused_too(served: Served) -> None:
    """It would count as the producer's first batch, and the refused one, sent again, as out of order."""
    await served.make_topic("t")
    oracle = oracle_for(served)
    oracle.codes = [Error.NOT_COORDINATOR]
    waiting = [served.client.send(produce(str(number), sequence=number), 11) for number in range(3)]
    answers = await asyncio.wait_for(asyncio.gather(*waiting), ANSWER_MAX_S)
    codes = [Error(one.topics[0].partitions[0].error_code) for one in answers]
    assert codes == [Error.NOT_ENOUGH_REPLICAS, Error.NOT_LEADER_OR_FOLLOWER, Error.NOT_LEADER_OR_FOLLOWER]
    assert [await send(served, str(number), sequence=number) for number in range(3)] == [
        (Error.NONE, 0),
        (Error.NONE, 1),
        (Error.NONE, 2),
    ]


@with_broker()
async def test_no_answer_is_wanted(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    served.client.send(produce("a", acks=0), 11).cancel()
    partition = served.node.hosted.find("t", 0)
    await until(lambda: partition.log.end == 1)


@with_cluster()
async def test_another_leader_meanwhile_refuses_the_batch(cluster: Clustered) -> None:
    """The broker leads again, but a marker may have been written while another broker led."""
    await cluster.make_topic("t")
    oracle = oracle_for(*(cluster[broker] for broker in cluster.ids))
    oracle.open.clear()
    waiting = cluster[1].client.send(produce("a"), 11)
    await until(lambda: bool(oracle.asked))
    await cluster.move("t", 2)
    await cluster.move("t", 1)
    oracle.open.set()
    answer = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    assert answer.topics[0].partitions[0].error_code in (Error.NOT_ENOUGH_REPLICAS, Error.NOT_LEADER_OR_FOLLOWER)
    leader = cluster.replica(1, "t")
    assert leader.last_stable == leader.high_watermark


@with_cluster(offsets_topic_num_partitions=1)
async def test_another_leader_meanwhile_refuses_an_offset_too(cluster: Clustered) -> None:
    """After a marker that the other leader may have written, the offset would stay pending forever."""
    await cluster.make_topic("t")
    await cluster[1].call(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 6)
    await until(lambda: all(OFFSETS_TOPIC in cluster[one].node.hosted.image.topics for one in cluster.ids))
    await cluster.move(OFFSETS_TOPIC, 1)
    await until(lambda: has_read_groups(cluster[1]))
    oracle = oracle_for(*(cluster[broker] for broker in cluster.ids))
    oracle.open.clear()
    waiting = cluster[1].client.send(offset_of_group(), 4)
    await until(lambda: bool(oracle.asked))
    await cluster.move(OFFSETS_TOPIC, 2)
    await cluster.move(OFFSETS_TOPIC, 1)
    await until(lambda: has_read_groups(cluster[1]))
    oracle.open.set()
    answer = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    assert answer.topics[0].partitions[0].error_code == Error.CONCURRENT_TRANSACTIONS
    leader = cluster.replica(1, OFFSETS_TOPIC)
    assert leader.last_stable == leader.high_watermark


def has_read_groups(served: Served) -> bool:
    return any(
        coordinator._term.runtime is not None for coordinator in served.node.coordinators.groups.local_coordinators
    )
