"""Offset commits of one turn of the loop: one batch in the log, a result each, and one fate if it cannot be written."""

from collections.abc import Sequence
from typing import Any

import pytest

from tailrace.broker.coordination import partition_coordinator
from tailrace.broker.coordination.partition_coordinator import PartitionCoordinator
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.services.groups import OffsetToCommit, WhenCommitted
from tailrace.client.faults import ConnectionLost
from tailrace.groups.requests import MemberId
from tailrace.model.caller import Caller
from tailrace.model.faults import CoordinatorUnavailable, Fault, GroupNotFound, NotCoordinator
from tailrace.records.header import BatchHeader
from tailrace.records.opened import batches
from tests.unit.broker.groups.test_coordinator import (
    BESIDE,
    FEW,
    NOT_HERE,
    commit,
    committed,
    coordinator,
    heartbeat,
    join,
    partition,
    sync,
)
from tests.unit.broker.simulated import Brokers, simulated

Results = list[tuple[str, Sequence[Fault | None]]]


def commit_in_this_turn(brokers: Brokers, broker: int, group: str, offset: int, results: Results, **more: int) -> None:
    """Begin a commit without giving the loop a turn; the result will be added to `results`."""

    def done(faults: list[Fault | None] | Exception) -> None:
        assert isinstance(faults, list), faults
        results.append((group, faults))

    begin_commit(brokers, broker, group, offset, done, **more)


def begin_commit(
    brokers: Brokers, broker: int, group: str, offset: int, done: WhenCommitted, generation: int = -1
) -> None:
    node = brokers[broker]
    one = OffsetToCommit(node.hosted.image.topics["t"], 0, offset, -1, "")
    brokers.within(
        broker,
        lambda: node.services.groups.commit_offsets(
            Caller(), group, MemberId(""), generation, [one], done, knows_epochs=True
        ),
    )


def headers(log: Partition, begin: int) -> list[BatchHeader]:
    """The batches from an offset on."""
    read = log.log.read(begin, 1024 * 1024, log.log.end)
    assert read is not None
    return [header for _, header in batches(read.data)]


@simulated(count=1, **FEW)
async def test_commits_of_one_turn_are_one_batch(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    log, results = partition(brokers, here), Results()
    begin = log.log.end
    for number in range(10):
        commit_in_this_turn(brokers, here, ("g", BESIDE)[number % 2], number, results)
    assert not results, "answered before it is written"
    await brokers.until(lambda: len(results) == 10)
    assert [header.records for header in headers(log, begin)] == [10]
    assert results == [("g", [None]), (BESIDE, [None])] * 5, "in order"
    assert (await committed(brokers, here), await committed(brokers, here, BESIDE)) == ((0, 8), (0, 9))


@simulated(count=1, **FEW)
async def test_a_refused_commit_among_others_fails_alone(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    log, results = partition(brokers, here), Results()
    begin = log.log.end
    commit_in_this_turn(brokers, here, "g", 1, results)
    commit_in_this_turn(brokers, here, BESIDE, 2, results, generation=3)  # there is no such group yet
    commit_in_this_turn(brokers, here, "g", 3, results)
    await brokers.until(lambda: len(results) == 3)
    assert [header.records for header in headers(log, begin)] == [2]
    assert [type(faults[0]) for _, faults in results] == [type(None), GroupNotFound, type(None)]
    assert (await committed(brokers, here), await committed(brokers, here, BESIDE)) == ((0, 3), (0, -1))


@simulated(count=1, **FEW)
async def test_a_commit_sees_what_those_before_it_in_the_batch_have_done(brokers: Brokers) -> None:
    """The first one creates the group. So the second, which names a generation, is refused as an unknown member."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    results = Results()
    commit_in_this_turn(brokers, here, "g", 1, results)
    commit_in_this_turn(brokers, here, "g", 2, results, generation=3)
    await brokers.until(lambda: len(results) == 2)
    assert [type(faults[0]).__name__ for _, faults in results] == ["NoneType", "UnknownMember"]


@simulated(count=1, **FEW)
async def test_a_batch_that_cannot_be_written_fails_all_and_leaves_nothing_behind(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    assert await commit(brokers, here, 5) == 0
    results = Results()
    brokers.machine(here).storage.fill(0)
    for offset in (6, 7):
        commit_in_this_turn(brokers, here, "g", offset, results)
    commit_in_this_turn(brokers, here, BESIDE, 8, results, generation=3)
    await brokers.until(lambda: len(results) == 3)
    assert [type(faults[0]) for _, faults in results] == [CoordinatorUnavailable] * 3
    brokers.machine(here).storage.make_room()
    assert (await committed(brokers, here))[0] in NOT_HERE, "its machine may be ahead of the log"
    await brokers.elapse(1.0)
    assert await committed(brokers, here) == (0, 5)


@pytest.mark.parametrize(
    ("owner", "step"), [(Partition, "append_own"), (PartitionCoordinator, "_set_timer")], ids=["append", "before"]
)
def test_an_error_of_our_own_answers_every_commit_of_the_batch(
    owner: type, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that were refused, or were queued and had no turn yet. What was not appended is forgotten."""

    @simulated(count=1, **FEW)
    async def check(brokers: Brokers) -> None:
        await brokers.make_topic("t", (1,))
        here = await coordinator(brokers, 1)
        assert await commit(brokers, here, 5) == 0
        log = partition(brokers, here)
        end = log.log.end
        results: list[object] = []

        def fail(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, fail)
            patch.setattr(partition_coordinator, "COORDINATOR_BATCH_MAX_RECORDS", 2)
            for offset in (6, 7, 8):
                begin_commit(brokers, here, "g", offset, results.append)
            begin_commit(brokers, here, BESIDE, 9, results.append, generation=3)
            await brokers.until(lambda: len(results) == 4)
        assert [str(error) for error in results] == ["a bug"] * 4
        assert log.log.end == end
        assert (await committed(brokers, here))[0] in NOT_HERE, "its machine may be ahead of the log"
        await brokers.elapse(1.0)
        assert await committed(brokers, here) == (0, 5)
        assert await commit(brokers, here, 10) == 0
        assert await committed(brokers, here) == (0, 10)

    check()


@simulated(count=1, **FEW)
async def test_an_error_of_our_own_closes_the_connection_of_the_client(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(Partition, "append_own", fail)
        with pytest.raises(ConnectionLost, match="the broker closed it"):
            await commit(brokers, here, 6)


@simulated(**FEW)
async def test_a_batch_without_a_majority_is_not_answered(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    here = await coordinator(brokers, 1)
    assert await commit(brokers, here, 5) == 0
    for broker in brokers.ids:
        if broker != here:
            brokers.kill(broker)
    log, results = partition(brokers, here), Results()
    end = log.log.end
    for offset in (6, 7):
        commit_in_this_turn(brokers, here, "g", offset, results)
    await brokers.until(lambda: log.log.end == end + 2)
    assert not results
    await brokers.until(lambda: len(results) == 2)
    assert [type(faults[0]) for _, faults in results] == [NotCoordinator] * 2


@simulated(count=1, **FEW)
async def test_a_batch_is_bounded(brokers: Brokers) -> None:
    """More commits than a batch may hold are continued in the next turn of the loop."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    log, results = partition(brokers, here), Results()
    begin = log.log.end
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_coordinator, "COORDINATOR_BATCH_MAX_RECORDS", 4)
        for offset in range(10):
            commit_in_this_turn(brokers, here, "g", offset, results)
        await brokers.until(lambda: len(results) == 10)
    assert [header.records for header in headers(log, begin)] == [4, 4, 2]
    assert await committed(brokers, here) == (0, 9)


@simulated(count=1, offsets_topic_num_partitions=3, group_initial_rebalance_delay_ms=0, message_max_bytes=400)
async def test_a_batch_of_several_commits_is_not_larger_than_message_max_bytes(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    log, results = partition(brokers, here), Results()
    begin = log.log.end
    for offset in range(20):
        commit_in_this_turn(brokers, here, "g", offset, results)
    await brokers.until(lambda: len(results) == 20)
    found = headers(log, begin)
    assert len(found) > 1
    assert all(header.size <= 400 for header in found)
    assert sum(header.records for header in found) == 20


@simulated(count=1, **FEW)
async def test_other_requests_of_the_turn_keep_their_own_results(brokers: Brokers) -> None:
    """A group with members refuses commits of strangers, whichever requests come with them."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    member = await join(brokers, here, "g")
    assert await sync(brokers, here, "g", member) == 0
    results = Results()
    commit_in_this_turn(brokers, here, "g", 1, results)
    commit_in_this_turn(brokers, here, BESIDE, 2, results)
    assert await heartbeat(brokers, here, member) == 0
    assert [type(faults[0]).__name__ for _, faults in results] == ["UnknownMember", "NoneType"]
    assert await committed(brokers, here, BESIDE) == (0, 2)


@simulated(count=1, fsync="never", **FEW)
async def test_clients_that_send_the_next_commit_at_once_get_one_batch_per_turn(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fsync off a commit is answered in the turn that writes it, and its answer may bring the next one."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    log, turns = partition(brokers, here), 0
    take_turns = PartitionCoordinator._take_queued_turns

    def counted(local: PartitionCoordinator[Any, Any]) -> None:
        nonlocal turns
        turns += 1
        take_turns(local)

    monkeypatch.setattr(PartitionCoordinator, "_take_queued_turns", counted)
    begin, left = log.log.end, {"g": 20, BESIDE: 20}

    class Again(Results):
        def append(self, result: tuple[str, Sequence[Fault | None]]) -> None:
            group, faults = result
            assert faults == [None]
            left[group] -= 1
            if left[group]:
                commit_in_this_turn(brokers, here, group, left[group], self)

    for group in left:
        commit_in_this_turn(brokers, here, group, 100, Again())
    await brokers.until(lambda: not any(left.values()))
    assert [header.records for header in headers(log, begin)] == [2] * 20
    assert turns == 20
