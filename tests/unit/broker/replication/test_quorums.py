"""How a leader notices the loss of its quorum, and how waiting producers and coordinators are answered."""

import asyncio
from contextlib import suppress
from functools import partial

from tailrace.model.faults import Fault
from tailrace.raft.effects import Vote
from tailrace.raft.replica import Role
from tailrace.raft.voters import NO_VOTER
from tests.unit.broker.simulated import Brokers, simulated


def lose_sessions(brokers: Brokers, *, leader: int, follower: int) -> None:
    """The follower is paused, and its connections are lost."""
    brokers.machine(follower).pause()
    quorums = brokers[leader].quorums
    for peer in [peer for peer in quorums._sessions if peer.broker == follower]:
        brokers.within(leader, partial(quorums.fetch_connection_lost, peer))


@simulated()
async def test_a_leader_resigns_whose_followers_left_one_after_the_other(brokers: Brokers) -> None:
    """Each loses its fetch session, the second while a check after the first is scheduled."""
    await brokers.make_topic("t", (1, 2, 3))
    leader = brokers.replica(1, "t")
    lose_sessions(brokers, leader=1, follower=2)
    await brokers.elapse(1.2)
    lose_sessions(brokers, leader=1, follower=3)
    await brokers.until(lambda: not leader.leads, within_seconds=5.0)


@simulated()
async def test_who_asks_for_more_than_a_majority_is_answered_when_the_last_has_it(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3), min_insync_replicas=3)
    leader = brokers.replica(1, "t")
    brokers.machine(3).pause()
    end = brokers.append(1, "t")
    answers: list[Fault | None] = []
    brokers.within(1, lambda: leader.when_acknowledged(end, answers.append))
    await brokers.until(lambda: leader.high_watermark == end)
    assert answers == []
    brokers.machine(3).resume()
    await brokers.until(lambda: bool(answers), within_seconds=5.0)
    assert answers == [None]


@simulated()
async def test_a_coordinator_asks_for_no_more_than_a_majority(brokers: Brokers) -> None:
    """min.insync.replicas applies to clients: neither markers nor coordinators' records wait for it."""
    await brokers.make_topic("t", (1, 2, 3), min_insync_replicas=3)
    leader = brokers.replica(1, "t")
    brokers.machine(3).pause()
    brokers.append(1, "t")
    await brokers.machine(1).run(leader.committed())
    assert leader.acknowledged < leader.high_watermark == leader.log.end


@simulated()
async def test_who_gives_up_waiting_is_forgotten(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    leader = brokers.replica(1, "t")
    for other in (2, 3):
        brokers.machine(other).pause()
    brokers.append(1, "t")

    async def give_up() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await leader.committed()

    await brokers.machine(1).run(give_up())
    assert len(leader._commit_waiters) == 0


@simulated(count=1, min_insync_replicas=2)
async def test_a_first_broker_starts_whatever_is_asked_for_clients(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    assert brokers.replica(1, "t").leads


@simulated()
async def test_a_leader_without_room_lets_another_lead(brokers: Brokers) -> None:
    """Its leader-change batch does not fit, and clients could neither write nor read until there is room."""
    await brokers.make_topic("t", (1, 2, 3))
    brokers.append(1, "t")
    await brokers.elapse(1.0)
    second, third = brokers.replica(2, "t"), brokers.replica(3, "t")
    end = brokers.append(1, "t")
    await brokers.until(lambda: second.log.end == third.log.end == end)
    for one in (second, third):
        brokers.machine(one.me.broker).storage.fill(0, below=one.log.folder)
    brokers.kill(1)
    await brokers.until(lambda: any(one.member.announcing for one in (second, third)), within_seconds=20.0)
    leader, other = (second, third) if second.member.announcing else (third, second)
    brokers.machine(other.me.broker).storage.make_room()
    await brokers.until(lambda: other.replica.role is Role.LEADER, within_seconds=20.0)
    await brokers.start(1)
    await brokers.until(lambda: other.leads, within_seconds=20.0)
    assert not leader.member.announcing


@simulated()
async def test_a_deleted_partition_wants_nothing_any_more_whatever_ends_late(brokers: Brokers) -> None:
    """A vote was being synced, and a fetch was about to be retried, when the topic was deleted."""
    await brokers.make_topic("t", (1, 2, 3))
    partition, quorums = brokers.replica(3, "t"), brokers[3].quorums
    await brokers.delete_topic("t")
    await brokers.until(lambda: "t" not in brokers[3].hosted.image.topics and partition.member not in quorums._fetching)
    vote = Vote(epoch=partition.epoch, voter=NO_VOTER)
    brokers.within(3, lambda: partition.member.vote_stored(vote))
    brokers.within(3, partition.member.tick)
    assert partition.member not in quorums._fetching
