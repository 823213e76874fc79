"""Transactions on a partition, over the wire: what consumers read, and which markers are accepted."""

import asyncio
from typing import Any

import pytest

from tailrace.records.opened import batches, open_batch
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_producers import DescribeProducersRequest, TopicAskedFor
from tests.unit.doors.kafka.clustered import Clustered, with_cluster
from tests.unit.doors.kafka.hostile import until
from tests.unit.doors.kafka.served import ANSWER_MAX_S, Served, serving, with_broker
from tests.unit.doors.kafka.transacting import fetch, latest, look, mark, now_ms, oracle_for, send


def told(fetched: Any) -> tuple[int, int, int, list[tuple[int, int]]]:
    """High watermark, last stable offset, the number of batches, and the aborted transactions of a fetch."""
    aborted = [(one.producer_id, one.first_offset) for one in fetched.aborted_transactions or ()]
    return fetched.high_watermark, fetched.last_stable_offset, len(list(batches(fetched.records))), aborted


@with_broker()
async def test_readers_stop_at_an_open_transaction_and_learn_what_was_aborted(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await served.produce("t", now_ms())
    assert await send(served, "a") == (Error.NONE, 1)
    await served.produce("t", now_ms())
    assert told(await look(served)) == (3, 1, 1, [])
    assert told(await look(served, isolation=0)) == (3, 1, 3, [])
    assert (await latest(served), await latest(served, isolation=0)) == (1, 3)
    assert await mark(served) == Error.NONE
    assert told(await look(served)) == (4, 4, 4, [(7, 1)])
    assert await latest(served) == 4


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_tells_of_aborted_transactions(tmp_path: Any, version: int) -> None:
    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            oracle_for(served)
            await send(served, "a")
            await mark(served)
            await send(served, "b", sequence=1)
            await mark(served, commits=True)
            assert told(await look(served, version=version)) == (4, 4, 4, [(7, 0)])
            assert told(await look(served, 2, version=version)) == (4, 4, 2, [])
            fetched = await look(served, version=version, isolation=0)
            assert fetched.aborted_transactions is None

    asyncio.run(run())


@with_broker()
async def test_a_parked_fetch_wakes_when_its_transaction_is_decided(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a")
    partition = served.node.hosted.find("t", 0)
    waiting = served.client.send(fetch(0, wait_ms=60_000), 11)
    await until(lambda: bool(partition._watchers))
    await partition.write_marker(7, 0, 0, True)
    answer = await asyncio.wait_for(waiting, ANSWER_MAX_S)
    assert told(answer.topics[0].partitions[0]) == (2, 2, 2, [])


@with_broker()
async def test_a_repeated_marker_is_acknowledged_and_not_written_again(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a")
    assert [await mark(served, commits=True) for _ in range(3)] == [Error.NONE] * 3
    assert await latest(served) == 2


@with_broker()
async def test_markers_of_the_past_are_refused(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a", epoch=2)
    assert await mark(served, epoch=1) == Error.INVALID_PRODUCER_EPOCH
    assert await mark(served, epoch=2, coordinator=5) == Error.NONE
    await send(served, "b", epoch=2, sequence=1)
    assert await mark(served, epoch=2, coordinator=4) == Error.TRANSACTION_COORDINATOR_FENCED
    assert (await latest(served), await latest(served, isolation=0)) == (2, 3)
    assert await mark(served, epoch=2, coordinator=6, topic="u") == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("late_commits", [True, False])
def test_a_late_marker_never_touches_the_next_transaction(tmp_path: Any, late_commits: bool) -> None:
    """KIP-890: the coordinator raises the producer epoch with each end, and the next transaction uses it."""

    async def run() -> None:
        async with serving(tmp_path) as served:
            await served.make_topic("t")
            oracle_for(served)
            await send(served, "a", version=12)
            assert await mark(served, epoch=1, version=2, commits=late_commits) == Error.NONE
            assert await send(served, "b", epoch=1, version=12) == (Error.NONE, 2)
            late = await mark(served, epoch=1, version=2, commits=late_commits)
            assert late == Error.INVALID_PRODUCER_EPOCH
            assert (await latest(served), await latest(served, isolation=0)) == (2, 3)
            assert await mark(served, epoch=2, version=2, commits=not late_commits) == Error.NONE
            assert told(await look(served, 2)) == (4, 4, 2, [(7, 2)] if late_commits else [])

    asyncio.run(run())


@with_broker()
async def test_a_fenced_producer_writes_nothing(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a")
    await mark(served, epoch=1)  # its time is up
    assert await send(served, "b", sequence=1) == (Error.INVALID_PRODUCER_EPOCH, -1)
    assert await latest(served, isolation=0) == 2


@with_broker()
async def test_a_partition_that_was_never_written_to_is_fenced_by_its_marker(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    assert await mark(served, epoch=1) == Error.NONE
    assert await send(served, "late") == (Error.INVALID_PRODUCER_EPOCH, -1)


@with_broker()
async def test_producers_are_described(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a", epoch=3)
    await mark(served, epoch=3, coordinator=9)
    await send(served, "b", epoch=3, sequence=1)
    asked = DescribeProducersRequest(topics=(TopicAskedFor(name="t", partitions=(0, 1)),))
    here, nowhere = (await served.call(asked, 0)).topics[0].partitions
    (one,) = here.active_producers
    assert (one.producer_id, one.producer_epoch, one.last_sequence) == (7, 3, 1)
    assert (one.coordinator_epoch, one.current_txn_start_offset) == (9, 2)
    assert one.last_timestamp > 0
    assert nowhere.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION


@with_broker()
async def test_a_restart_forgets_nothing(served: Served) -> None:
    await served.make_topic("t")
    oracle_for(served)
    await send(served, "a")
    await mark(served)
    await send(served, "b", sequence=1)
    partition = served.node.hosted.find("t", 0)
    point = await partition.log.checkpoint()
    again = await type(partition.log).open(
        partition.log.folder,
        served.node.ports,
        settings=partition.log.settings,
        fsync="never",
        recovery=point,
        clean=False,
        producer_expiration_ms=1000,
    )
    assert again.last_stable(again.end) == 2
    assert [one[:3] for one in await again.aborted_between_cold(0, again.end)] == [(7, 0, 1)]


@with_cluster()
async def test_a_follower_bounds_its_readers_and_takes_over_what_is_open(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    oracle_for(*(cluster[broker] for broker in cluster.ids))
    await send(cluster[1], "a")
    await mark(cluster[1])
    await send(cluster[1], "b", sequence=1)
    await cluster.caught_up("t", 3)
    assert told(await look(cluster[2])) == (3, 2, 2, [(7, 0)])
    assert await mark(cluster[2], commits=True) == Error.NOT_LEADER_OR_FOLLOWER
    await cluster.move("t", 2)
    assert await latest(cluster[2]) == 2
    assert await mark(cluster[2], commits=True) == Error.NONE
    end = cluster.replica(2, "t").high_watermark
    assert await latest(cluster[2]) == end
    await cluster.caught_up("t", end)
    seen = await look(cluster[3])
    assert (seen.last_stable_offset, len(seen.aborted_transactions)) == (end, 1)
    values = [
        record.value for batch, header in batches(seen.records) if not header.is_control for record in open_batch(batch)
    ]
    assert values == [b"a", b"b"]


@with_cluster()
async def test_a_marker_is_acknowledged_when_a_majority_has_it(cluster: Clustered) -> None:
    await cluster.make_topic("t")
    oracle_for(cluster[1])
    await send(cluster[1], "a")
    leader = cluster.replica(1, "t")
    for broker in (2, 3):
        await cluster[broker].node.quorums.peers.close()
    waiting = asyncio.ensure_future(leader.write_marker(7, 0, 0, True))
    await until(lambda: leader.log.end == 2)
    assert (leader.high_watermark, leader.last_stable, waiting.done()) == (1, 0, False)
    waiting.cancel()
