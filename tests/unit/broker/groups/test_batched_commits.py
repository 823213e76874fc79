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
from tailrace.model.faults import CoordinatorUnavailable, Fault, GroupNotFound, NotCoordinator, UnknownMember
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


class Commits:
    """Offset commits to the coordinator, begun without giving the loop a turn, with their results and their batches."""

    def __init__(self, brokers: Brokers, here: int) -> None:
        self.brokers = brokers
        self.here = here  # the coordinator
        self.log = partition(brokers, here).log
        self.start = self.log.end
        self.results = Results()

    @classmethod
    async def of_topic(cls, brokers: Brokers, *replicas: int) -> "Commits":
        await brokers.make_topic("t", replicas)
        return cls(brokers, await coordinator(brokers, 1))

    def begin(self, group: str, offset: int, generation: int = -1) -> None:
        def done(faults: list[Fault | None] | Exception) -> None:
            assert isinstance(faults, list), faults
            self.results.append((group, faults))

        self.begin_with(done, group, offset, generation)

    def begin_with(self, done: WhenCommitted, group: str, offset: int, generation: int = -1) -> None:
        node = self.brokers[self.here]
        one = OffsetToCommit(node.hosted.image.topics["t"], 0, offset, -1, "")
        self.brokers.within(
            self.here,
            lambda: node.services.groups.commit_offsets(
                Caller(), group, MemberId(""), generation, [one], done, knows_epochs=True
            ),
        )

    async def all_answered(self, count: int) -> None:
        await self.brokers.until(lambda: len(self.results) == count)

    def faults(self) -> list[type]:
        return [type(faults[0]) for _, faults in self.results]

    def batches(self) -> list[BatchHeader]:
        """What was written to the log since these commits began."""
        read = self.log.read(self.start, 1024 * 1024, self.log.end)
        assert read is not None
        return [header for _, header in batches(read.data)]

    def batch_records(self) -> list[int]:
        return [header.records for header in self.batches()]


@simulated(count=1, **FEW)
async def test_commits_of_one_turn_are_one_batch(brokers: Brokers) -> None:
    commits = await Commits.of_topic(brokers, 1)
    for number in range(10):
        commits.begin(("g", BESIDE)[number % 2], number)
    assert not commits.results, "answered before it is written"
    await commits.all_answered(10)
    assert commits.batch_records() == [10]
    assert commits.results == [("g", [None]), (BESIDE, [None])] * 5, "in order"
    assert (await committed(brokers, commits.here), await committed(brokers, commits.here, BESIDE)) == ((0, 8), (0, 9))


@simulated(count=1, **FEW)
async def test_a_refused_commit_among_others_fails_alone(brokers: Brokers) -> None:
    commits = await Commits.of_topic(brokers, 1)
    commits.begin("g", 1)
    commits.begin(BESIDE, 2, generation=3)  # there is no such group yet
    commits.begin("g", 3)
    await commits.all_answered(3)
    assert commits.batch_records() == [2]
    assert commits.faults() == [type(None), GroupNotFound, type(None)]
    assert (await committed(brokers, commits.here), await committed(brokers, commits.here, BESIDE)) == ((0, 3), (0, -1))


@simulated(count=1, **FEW)
async def test_a_commit_sees_what_those_before_it_in_the_batch_have_done(brokers: Brokers) -> None:
    """The first one creates the group. So the second, which names a generation, is refused as an unknown member."""
    commits = await Commits.of_topic(brokers, 1)
    commits.begin("g", 1)
    commits.begin("g", 2, generation=3)
    await commits.all_answered(2)
    assert commits.faults() == [type(None), UnknownMember]


@simulated(count=1, **FEW)
async def test_a_batch_that_cannot_be_written_fails_all_and_leaves_nothing_behind(brokers: Brokers) -> None:
    commits = await Commits.of_topic(brokers, 1)
    assert await commit(brokers, commits.here, 5) == 0
    storage = brokers.machine(commits.here).storage
    storage.fill(0)
    for offset in (6, 7):
        commits.begin("g", offset)
    commits.begin(BESIDE, 8, generation=3)
    await commits.all_answered(3)
    assert commits.faults() == [CoordinatorUnavailable] * 3
    storage.make_room()
    assert (await committed(brokers, commits.here))[0] in NOT_HERE, "its machine may be ahead of the log"
    await brokers.elapse(1.0)
    assert await committed(brokers, commits.here) == (0, 5)


@pytest.mark.parametrize(
    ("owner", "step"), [(Partition, "append_own"), (PartitionCoordinator, "_set_timer")], ids=["append", "before"]
)
def test_an_error_of_our_own_answers_every_commit_of_the_batch(
    owner: type, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that were refused, or were queued and had no turn yet. What was not appended is forgotten."""

    @simulated(count=1, **FEW)
    async def check(brokers: Brokers) -> None:
        commits = await Commits.of_topic(brokers, 1)
        here, log = commits.here, commits.log
        assert await commit(brokers, here, 5) == 0
        end = log.end
        results: list[object] = []

        def fail(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, fail)
            patch.setattr(partition_coordinator, "COORDINATOR_BATCH_MAX_RECORDS", 2)
            for offset in (6, 7, 8):
                commits.begin_with(results.append, "g", offset)
            commits.begin_with(results.append, BESIDE, 9, generation=3)
            await brokers.until(lambda: len(results) == 4)
        assert [str(error) for error in results] == ["a bug"] * 4
        assert log.end == end
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
    commits = await Commits.of_topic(brokers, 1, 2, 3)
    assert await commit(brokers, commits.here, 5) == 0
    for broker in brokers.ids:
        if broker != commits.here:
            brokers.kill(broker)
    end = commits.log.end
    for offset in (6, 7):
        commits.begin("g", offset)
    await brokers.until(lambda: commits.log.end == end + 2)
    assert not commits.results
    await commits.all_answered(2)
    assert commits.faults() == [NotCoordinator] * 2


@simulated(count=1, **FEW)
async def test_a_batch_is_bounded(brokers: Brokers) -> None:
    """More commits than a batch may hold are continued in the next turn of the loop."""
    commits = await Commits.of_topic(brokers, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition_coordinator, "COORDINATOR_BATCH_MAX_RECORDS", 4)
        for offset in range(10):
            commits.begin("g", offset)
        await commits.all_answered(10)
    assert commits.batch_records() == [4, 4, 2]
    assert await committed(brokers, commits.here) == (0, 9)


@simulated(count=1, offsets_topic_num_partitions=3, group_initial_rebalance_delay_ms=0, message_max_bytes=400)
async def test_a_batch_of_several_commits_is_not_larger_than_message_max_bytes(brokers: Brokers) -> None:
    commits = await Commits.of_topic(brokers, 1)
    for offset in range(20):
        commits.begin("g", offset)
    await commits.all_answered(20)
    found = commits.batches()
    assert len(found) > 1
    assert all(header.size <= 400 for header in found)
    assert sum(header.records for header in found) == 20


@simulated(count=1, **FEW)
async def test_other_requests_of_the_turn_keep_their_own_results(brokers: Brokers) -> None:
    """A group with members refuses commits of strangers, whichever requests come with them."""
    commits = await Commits.of_topic(brokers, 1)
    member = await join(brokers, commits.here, "g")
    assert await sync(brokers, commits.here, "g", member) == 0
    commits.begin("g", 1)
    commits.begin(BESIDE, 2)
    assert await heartbeat(brokers, commits.here, member) == 0
    assert commits.faults() == [UnknownMember, type(None)]
    assert await committed(brokers, commits.here, BESIDE) == (0, 2)


@simulated(count=1, fsync="never", **FEW)
async def test_clients_that_send_the_next_commit_at_once_get_one_batch_per_turn(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fsync off a commit is answered in the turn that writes it, and its answer may bring the next one."""
    commits, turns = await Commits.of_topic(brokers, 1), 0
    take_turns = PartitionCoordinator._take_queued_turns

    def counted(local: PartitionCoordinator[Any, Any]) -> None:
        nonlocal turns
        turns += 1
        take_turns(local)

    monkeypatch.setattr(PartitionCoordinator, "_take_queued_turns", counted)
    left = {"g": 20, BESIDE: 20}

    class Again(Results):
        def append(self, result: tuple[str, Sequence[Fault | None]]) -> None:
            group, faults = result
            assert faults == [None]
            left[group] -= 1
            if left[group]:
                commits.begin(group, left[group])

    commits.results = Again()
    for group in left:
        commits.begin(group, 100)
    await brokers.until(lambda: not any(left.values()))
    assert commits.batch_records() == [2] * 20
    assert turns == 20
