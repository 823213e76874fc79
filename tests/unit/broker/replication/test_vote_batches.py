"""Storing votes: many with one fsync, sent only when durable, none lost while the disk is full."""

from collections.abc import Awaitable, Callable, Iterator
from functools import wraps

import pytest

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.replication.vote_batches import VoteBatches
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.model.ids import Epoch
from tailrace.ports.disk import read_file, replace_file
from tailrace.raft.effects import Vote
from tailrace.raft.events import Campaign
from tailrace.raft.messages import VoteRequest
from tailrace.raft.voters import NO_VOTER
from tailrace.testing.simulation import Machine, World
from tests.unit.broker.partitions.members import Noting, a_member, voters
from tests.unit.broker.simulated import KIND_ODDS

PATH = "/data/votes"


class Booth:
    """Members whose votes go through one journal."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world = world
        self.machine = machine
        self.ports = machine.boot()
        self.member_ports = Noting(machine, self.ports)
        self.journal = VoteJournal(self.ports.disk, PATH)

    async def open(self, count: int) -> list[QuorumMember]:
        self.ports.disk.make_dir("/data")
        await self.journal.load()
        self.ballots = VoteBatches(self.journal, self.member_ports.spawn)
        self.member_ports.store_vote = self.ballots.store  # type: ignore[method-assign]
        return [await a_member(self.ports, self.member_ports, number) for number in range(count)]

    @property
    def asked(self) -> list[VoteRequest]:
        return [one for one in self.member_ports.sent if isinstance(one, VoteRequest)]

    async def until(self, condition: Callable[[], bool], within_seconds: float = 5.0) -> None:
        await self.world.until(condition, within_seconds=within_seconds)


@pytest.fixture
def booth() -> Iterator[Booth]:
    with World(7, odds=KIND_ODDS) as world:
        yield Booth(world, world.machine("b1"))


def in_booth(test: Callable[[Booth], Awaitable[None]]) -> Callable[[Booth], None]:
    @wraps(test)
    def run(booth: Booth) -> None:
        async def play() -> None:
            await test(booth)

        async def main() -> None:
            await booth.machine.run(play())

        booth.world.run(main())

    return run


@in_booth
async def test_nobody_is_asked_before_the_own_vote_is_on_disk(booth: Booth) -> None:
    (member,) = await booth.open(1)
    member.step(Campaign())
    assert booth.asked == []
    await booth.until(lambda: len(booth.asked) == 2)
    assert booth.journal.last(member.key).voter == voters[0]


@in_booth
async def test_votes_that_wait_share_a_sync(booth: Booth) -> None:
    members = await booth.open(50)
    before = booth.world.loop.time()
    for member in members:
        member.step(Campaign())
    await booth.until(lambda: len(booth.asked) == 100)
    assert booth.world.loop.time() - before < 4 * KIND_ODDS.sync.high_seconds


@in_booth
async def test_a_later_vote_takes_the_place_of_one_that_is_not_on_its_way_yet(booth: Booth) -> None:
    first, second = await booth.open(2)
    first.step(Campaign())
    await booth.world.until(lambda: booth.journal.last(first.key).epoch == 0)  # on its way
    for _ in range(3):
        second.step(Campaign())
        second.step(
            VoteRequest(
                sender=voters[1],
                to=voters[0],
                epoch=Epoch(second.replica.epoch + 1),
                end=second.replica.log_end,
                last_epoch=-1,
            )
        )
    await booth.until(lambda: second.replica.stored)
    assert booth.journal.last(second.key).epoch == second.replica.epoch
    assert [one.epoch for one in booth.asked] == [0, 0]  # of `second`'s own elections none came that far


@in_booth
async def test_a_full_disk_delays_a_vote_and_loses_none(booth: Booth) -> None:
    (member,) = await booth.open(1)
    booth.machine.storage.fill()
    member.step(Campaign())
    with pytest.raises(TimeoutError):
        await booth.until(lambda: bool(booth.asked), within_seconds=2.5)
    booth.machine.storage.make_room()
    await booth.until(lambda: len(booth.asked) == 2)


@in_booth
async def test_after_a_failed_sync_no_vote_is_cast_any_more(booth: Booth) -> None:
    one, other = await booth.open(2)
    booth.machine.storage.fail_next_sync(PATH)
    one.step(Campaign())
    await booth.until(lambda: booth.journal.failed)
    other.step(Campaign())
    with pytest.raises(TimeoutError):
        await booth.until(lambda: bool(booth.asked), within_seconds=5.0)


@in_booth
async def test_a_member_that_is_gone_is_not_waited_for(booth: Booth) -> None:
    stays, goes = await booth.open(2)
    stays.step(Campaign())
    await booth.until(lambda: booth.journal.last(stays.key).epoch == 0)
    goes.step(Campaign())
    booth.ballots.forget(goes)
    with pytest.raises(TimeoutError):
        await booth.until(lambda: booth.journal.last(goes.key).epoch >= 0, within_seconds=1.0)
    assert len(booth.asked) == 2


@in_booth
async def test_what_a_failed_write_left_behind_takes_no_vote_back(booth: Booth) -> None:
    """Raft §5.2: the epoch was stored when the disk was full; the vote in it was then written over the leftover."""
    (member,) = await booth.open(1)
    given, begun = Vote(epoch=Epoch(7), voter=voters[1]), Vote(epoch=Epoch(7), voter=NO_VOTER)
    data = b""
    for vote in (given, begun):
        journal = VoteJournal(booth.ports.disk, f"/data/{len(data)}")
        await journal.load()
        await journal.store([(member.key, vote)])
        data += read_file(booth.ports.disk, f"/data/{len(data)}")
    await replace_file(booth.ports.disk, PATH, data)
    found = VoteJournal(booth.ports.disk, PATH)
    await found.load()
    assert found.last(member.key) == given
