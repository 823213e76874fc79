"""Deadlines of replicas: each is ticked at its deadline, not before, and none is missed."""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.quorum_batches import leader_change_of
from tailrace.broker.replication.deadlines import Deadlines
from tailrace.broker.replication.election_limit import ElectionLimit
from tailrace.model.ids import BrokerId, Epoch
from tailrace.model.limits import HELD_MESSAGES_MAX
from tailrace.raft.events import LeaderDisconnected
from tailrace.raft.messages import BeginEpoch
from tailrace.raft.replica import Role
from tailrace.raft.timing import Timing
from tailrace.testing.simulation import Delay, Odds, World
from tests.unit.broker.partitions.members import Noting, a_member, voters
from tests.unit.broker.simulated import KIND_ODDS

usual = Timing()
slow_disk = replace(
    KIND_ODDS, sync=Delay(low_seconds=2 * usual.fetch_timeout_s, high_seconds=3 * usual.fetch_timeout_s)
)


class Waiting:
    """Members whose ports keep their deadlines in one heap."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._machine = world.machine("b1")
        self.ports = self._machine.boot()
        self.member_ports = Noting(self._machine, self.ports)
        self.run = self._machine.run

    async def begin(self, count: int = 1) -> list[QuorumMember]:
        self.ticks = Deadlines(self.ports.clock, ElectionLimit(self.ports.clock))
        self.member_ports.wake = self.ticks.wake  # type: ignore[method-assign]
        members = [await a_member(self.ports, self.member_ports, number) for number in range(count)]
        for member in members:
            member.begin()
        return members

    async def elapse(self, seconds: float) -> None:
        over = self.world.loop.time() + seconds
        await self.world.until(lambda: self.world.loop.time() >= over, within_seconds=seconds + 1)


def waiting(test: Callable[[Waiting], Awaitable[None]], odds: Odds = KIND_ODDS) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        with World(7, odds=odds) as world:
            waiting = Waiting(world)

            async def play() -> None:
                await test(waiting)

            async def main() -> None:
                await waiting.run(play())

            world.run(main())

    del run.__wrapped__
    return run


def role(member: QuorumMember) -> Role:
    return member.replica.role


def follow(member: QuorumMember) -> None:
    member.step(BeginEpoch(sender=voters[1], to=voters[0], epoch=Epoch(5)))
    assert role(member) is Role.FOLLOWER


async def begin_anew(waiting: Waiting) -> QuorumMember:
    """A follower that restarts its log at a later start offset of the leader, which takes disk writes."""
    (member,) = await waiting.begin()
    follow(member)
    member.append_control(leader_change_of(member.replica, member.log.end, 0), now_ms=0)
    member.restart_log_at(100)
    assert not member.fetches
    return member


@waiting
async def test_who_hears_from_nobody_stands_when_its_time_has_come(waiting: Waiting) -> None:
    (member,) = await waiting.begin()
    await waiting.elapse(0.95 * usual.election_timeout_s)
    assert role(member) is Role.UNATTACHED
    await waiting.elapse(0.1 * usual.election_timeout_s)
    assert role(member) is Role.PROSPECTIVE


@waiting
async def test_a_deadline_that_moved_on_is_kept_all_the_same(waiting: Waiting) -> None:
    (member,) = await waiting.begin()
    await waiting.elapse(0.5)
    follow(member)
    await waiting.elapse(0.95 * usual.fetch_timeout_s)
    assert role(member) is Role.FOLLOWER
    await waiting.elapse(0.1 * usual.fetch_timeout_s)
    assert role(member) is Role.PROSPECTIVE


@waiting
async def test_a_deadline_that_comes_earlier_counts(waiting: Waiting) -> None:
    (member,) = await waiting.begin()
    follow(member)
    member.replica.history.appended(0, (voters[1], voters[2], voters[0]))  # two stand before it
    member.step(LeaderDisconnected(BrokerId(2), (BrokerId(3),)))
    assert role(member) is Role.FOLLOWER
    await waiting.elapse(2.5 * usual.backoff_s)
    assert role(member) is Role.PROSPECTIVE


@functools.partial(waiting, odds=slow_disk)
async def test_a_time_that_came_while_a_log_began_anew_is_looked_at_after_it(waiting: Waiting) -> None:
    member = await begin_anew(waiting)
    await waiting.elapse(1.5 * usual.fetch_timeout_s)
    assert not member.fetches
    assert role(member) is Role.FOLLOWER
    await waiting.world.until(lambda: role(member) is Role.PROSPECTIVE, within_seconds=60.0)
    assert member.log.end == 100


@functools.partial(waiting, odds=slow_disk)
async def test_what_is_said_while_a_log_begins_anew_is_kept_within_bounds(waiting: Waiting) -> None:
    member = await begin_anew(waiting)
    for epoch in range(6, 2 * HELD_MESSAGES_MAX):
        member.step(BeginEpoch(sender=voters[2], to=voters[0], epoch=Epoch(epoch)))
    await waiting.world.until(lambda: member.fetches, within_seconds=60.0)
    assert member.replica.epoch == 5 + HELD_MESSAGES_MAX


@waiting
async def test_many_that_are_due_at_once_are_all_looked_at(waiting: Waiting) -> None:
    members = await waiting.begin(700)
    await waiting.world.until(lambda: all(role(member) is Role.PROSPECTIVE for member in members), within_seconds=10.0)


@waiting
async def test_who_is_gone_is_left_alone_and_disturbs_nobody(waiting: Waiting) -> None:
    goes, stays = await waiting.begin(2)
    waiting.ticks.forget(goes)
    await waiting.elapse(1.1 * usual.election_timeout_s)
    assert (role(goes), role(stays)) == (Role.UNATTACHED, Role.PROSPECTIVE)


@waiting
async def test_nothing_happens_after_the_end(waiting: Waiting) -> None:
    (member,) = await waiting.begin()
    waiting.ticks.stop()
    await waiting.elapse(3 * usual.election_timeout_s)
    assert role(member) is Role.UNATTACHED
