"""Markers between brokers: each has its own result, whichever broker leads, and none delays the others."""

import asyncio
from dataclasses import replace

import pytest

from tailrace.broker.peers import Unreachable
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import BrokerId, Id
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.peers.write_markers import Marker, PartitionToMark, WriteMarkers, WriteMarkersAnswer
from tests.unit.doors.kafka.clustered import Clustered, with_cluster


def marker(topic_id: Id, *numbers: int, producer: int = 7, commits: bool = True) -> Marker:
    return Marker(
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        committed=commits,
        transaction_version=2,
        partitions=tuple(PartitionToMark(topic_id=topic_id, partition=number) for number in numbers),
    )


def codes(faults: list[list[Fault | None]]) -> list[list[Error]]:
    return [[Error.NONE if one is None else error_of(one) for one in some] for some in faults]


@with_cluster()
async def test_a_leader_writes_what_any_broker_sends(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1, 2), (2, 3))
    markers = [marker(topic_id, 0, 1), marker(Id(b"nobody knows it!"), 0), marker(topic_id, 0, producer=8)]
    expected = [[Error.NONE, Error.NOT_LEADER_OR_FOLLOWER], [Error.UNKNOWN_TOPIC_ID], [Error.NONE]]
    for sender in cluster.ids:  # one of them is the leader itself; what is repeated is not written again
        assert codes(await cluster[sender].node.coordinators.markers.send(BrokerId(1), markers)) == expected
    leader = cluster.replica(1, "t")
    assert (leader.high_watermark, [producer for producer, _ in leader.log.producers.items()]) == (2, [7, 8])


@with_cluster()
async def test_a_partition_without_its_majority_does_not_hold_up_the_others(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1, 3), (1, 2))
    await cluster[3].node.quorums.peers.close()
    markers = [marker(topic_id, 0, 1)]
    async with asyncio.timeout(5):
        faults = await cluster[2].node.coordinators.markers.send(BrokerId(1), markers)
    assert codes(faults) == [[Error.REQUEST_TIMED_OUT, Error.NONE]]


@with_cluster(brokers=2)
async def test_a_broker_that_is_gone_is_said_to_be(cluster: Clustered) -> None:
    topic_id = await cluster.make_topic("t", (1,))
    await cluster[1].node.quorums.peers.close()
    with pytest.raises(Unreachable):
        await cluster[2].node.coordinators.markers.send(BrokerId(1), [marker(topic_id, 0)], timeout_s=0.2)


@with_cluster(brokers=1)
async def test_a_late_marker_never_touches_the_next_transaction(cluster: Clustered) -> None:
    """With transactions v1 the next one has the same epoch: only the sender knows that it has given up a marker."""
    node = cluster[1].node
    topic_id = await cluster.make_topic("t", (1,))
    other = Id(b"another broker's")

    async def arrives(number: int, life: Id = other, leader_epoch: int = -1) -> WriteMarkersAnswer:
        place = PartitionToMark(topic_id=topic_id, partition=0, leader_epoch=leader_epoch)
        one = replace(marker(topic_id), transaction_version=1, partitions=(place,))
        return await node.coordinators.markers.serve(
            BrokerId(2), WriteMarkers(life=life, number=number, markers=(one,))
        )

    def begin(sequence: int) -> None:
        batch = build_batch(
            [NewRecord(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True
        )
        partition = cluster.replica(1, "t")
        guard = partition.guards.take(7, 0, partition.epoch)
        guard.verified = True
        partition.append(memoryview(batch), -1, guard)

    begin(0)
    assert (await arrives(2)).codes == (Error.NONE,)
    begin(1)
    for late in (1, 2):
        with pytest.raises(InvalidRequest, match="given it up"):
            await arrives(late)
    epoch = cluster.replica(1, "t").epoch
    assert (await arrives(3, leader_epoch=epoch + 1)).codes == (Error.UNKNOWN_LEADER_EPOCH,)
    assert cluster.replica(1, "t").log.producers.transactions.open == {7: 2}
    assert (await arrives(4, leader_epoch=epoch)).codes == (Error.NONE,)
    assert cluster.replica(1, "t").log.producers.transactions.open == {}
    assert (await arrives(1, life=Id(b"its next life...."[:16]))).codes == (Error.NONE,)


@with_cluster(brokers=1)
async def test_markers_of_one_request_are_appended_in_one_turn(cluster: Clustered) -> None:
    """So they share an fsync."""
    topic_id = await cluster.make_topic("t", (1,))
    markers = [marker(topic_id, 0, producer=number) for number in range(20)]
    writing = asyncio.ensure_future(cluster[1].node.coordinators.markers.send(BrokerId(1), markers))
    await asyncio.sleep(0)
    assert cluster.replica(1, "t").log.end == 20
    assert codes(await writing) == [[Error.NONE]] * 20
