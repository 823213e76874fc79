"""Group coordinators under failures: answers survive a failover, and none is given without a majority."""

import asyncio
from typing import Any

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.broker.partitions.partition import Partition
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.heartbeat import HeartbeatRequest
from tailrace.wire.messages.join_group import JoinGroupRequest, JoiningProtocol
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest
from tailrace.wire.messages.sync_group import MemberAssignment, SyncGroupRequest
from tests.unit.broker.simulated import Brokers, simulated
from tests.unit.doors.kafka.transacted import Transacted, group_offset

BESIDE_G = "j"  # a group that is kept in the same partition
FEW: dict[str, Any] = {"offsets_topic_num_partitions": 3, "group_initial_rebalance_delay_ms": 0}
BESIDE = "j"  # a group in the partition of g
NOT_HERE = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS)


async def coordinator(brokers: Brokers, asked: int) -> int:
    """The coordinator of group g, as a broker answers."""
    while True:
        found = await brokers.call(asked, FindCoordinatorRequest(coordinator_keys=("g",)), 6)
        if found.coordinators[0].error_code == 0:
            broker: int = found.coordinators[0].node_id
            return broker
        await brokers.elapse(0.1)


def partition(brokers: Brokers, broker: int) -> Partition:
    return brokers[broker].hosted.find(OFFSETS_TOPIC, partition_of("g", 3))


async def commit(brokers: Brokers, broker: int, offset: int, member_id: str = "", group: str = "g") -> int:
    one = PartitionToCommit(partition=0, committed_offset=offset, committed_metadata="")
    topic = TopicToCommit(name="t", partitions=(one,))
    generation = 1 if member_id else -1
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=generation, member_id=member_id, topics=(topic,)
    )
    answer = await brokers.call(broker, request, 9)
    error: int = answer.topics[0].partitions[0].error_code
    return error


async def committed(brokers: Brokers, broker: int, group_id: str = "g") -> tuple[int, int]:
    """The error and the offset."""
    topic = GroupTopicWanted(name="t", partition_indexes=(0,))
    request = OffsetFetchRequest(groups=(GroupWanted(group_id=group_id, topics=(topic,)),))
    (group,) = (await brokers.call(broker, request, 9)).groups
    return group.error_code, group.topics[0].partitions[0].committed_offset if group.topics else -1


async def join(brokers: Brokers, broker: int, group: str) -> str:
    """The id of a member of generation 1 that has no assignment yet."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoiningProtocol(name="range", metadata=b""),),
    )
    member_id: str = (await brokers.call(broker, request, 3)).member_id
    return member_id


async def sync(brokers: Brokers, broker: int, group: str, member_id: str) -> int:
    part = MemberAssignment(member_id=member_id, assignment=b"all")
    request = SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id, assignments=(part,))
    error: int = (await brokers.call(broker, request, 3)).error_code
    return error


async def begin(brokers: Brokers, broker: int) -> str:
    """The id of a member that has all partitions assigned."""
    member_id = await join(brokers, broker, "g")
    assert await sync(brokers, broker, "g", member_id) == 0
    return member_id


async def heartbeat(brokers: Brokers, broker: int, member_id: str, group: str = "g") -> int:
    """The answer, once there is a coordinator."""
    request = HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id)
    error: int = (await brokers.call(broker, request, 4)).error_code
    if error in NOT_HERE:
        await brokers.elapse(0.1)
        return await heartbeat(brokers, broker, member_id, group)
    return error


@simulated(**FEW)
async def test_what_was_answered_is_known_to_the_next_coordinator(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    old = await coordinator(brokers, 1)
    member = await begin(brokers, old)
    asked = next(one for one in brokers.ids if one != old)
    brokers.kill(old, power_loss=True)
    await brokers.until(lambda: any(partition(brokers, one).leads for one in brokers.ids))
    assert await heartbeat(brokers, await coordinator(brokers, asked), member) == 0


@simulated(**FEW)
async def test_without_a_majority_nothing_is_answered_not_even_a_read(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    here = await coordinator(brokers, 1)
    assert await commit(brokers, here, 5) == 0
    assert await committed(brokers, here) == (0, 5)
    for broker in brokers.ids:
        if broker != here:
            brokers.kill(broker)
    end = partition(brokers, here).log.end
    committing = asyncio.create_task(commit(brokers, here, 6))
    await brokers.until(lambda: partition(brokers, here).log.end > end)
    assert (await committed(brokers, here))[0] in NOT_HERE
    assert await committing in NOT_HERE


@simulated(count=1, **FEW)
async def test_a_coordinator_that_could_not_write_reads_its_log_again(brokers: Brokers) -> None:
    """A generation that could not be written is void: its members must rejoin, other groups continue."""
    here = await coordinator(brokers, 1)
    assert partition_of(BESIDE, 3) == partition_of("g", 3)
    member, other = await begin(brokers, here), await join(brokers, here, BESIDE)
    brokers.machine(1).storage.fill(0)
    assert await sync(brokers, here, BESIDE, other) == Error.COORDINATOR_NOT_AVAILABLE
    brokers.machine(1).storage.make_room()
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    assert (await brokers.call(here, request, 4)).error_code == Error.COORDINATOR_LOAD_IN_PROGRESS
    assert await heartbeat(brokers, here, member) == 0
    assert await heartbeat(brokers, here, other, BESIDE) == Error.UNKNOWN_MEMBER_ID


@simulated(count=1, **FEW)
async def test_a_member_that_falls_silent_is_let_go_by_the_clock(brokers: Brokers) -> None:
    here = await coordinator(brokers, 1)
    member = await begin(brokers, here)
    await brokers.elapse(5.5)
    assert await heartbeat(brokers, here, member) == 0
    await brokers.elapse(5.5)
    assert await heartbeat(brokers, here, member) == 0
    await brokers.elapse(6.5)
    assert await heartbeat(brokers, here, member) == Error.UNKNOWN_MEMBER_ID


@simulated(count=1, offsets_retention_minutes=1, offsets_retention_check_interval_ms=1000, **FEW)
async def test_old_offsets_are_forgotten_by_the_clock(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    assert await commit(brokers, here, 5) == 0
    await brokers.elapse(50)
    assert await committed(brokers, here) == (0, 5)
    await brokers.elapse(15)
    assert await committed(brokers, here) == (0, -1)


@simulated(count=1, **FEW)
async def test_offsets_of_a_topic_that_is_made_anew_are_not_taken_for_those_of_the_deleted_one(
    brokers: Brokers,
) -> None:
    """Expiry takes several turns and may fail; meanwhile the new topic exists and is consumed."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    for group in ("g", BESIDE):
        assert await commit(brokers, here, 5, group=group) == 0
    local = brokers[here].coordinators.groups.local("g")
    brokers.within(here, lambda: local.topics_deleted(["t"]))
    assert await commit(brokers, here, 1) == 0
    brokers.machine(here).storage.fill(0)
    await brokers.machine(here).run(local.expire())
    brokers.machine(here).storage.make_room()
    await brokers.elapse(1.0)  # it reads its log again
    assert (await committed(brokers, here), await committed(brokers, here, BESIDE)) == ((0, 1), (0, 5))
    await brokers.machine(here).run(local.expire())
    assert (await committed(brokers, here), await committed(brokers, here, BESIDE)) == ((0, 1), (0, -1))


@simulated(**FEW)
async def test_a_log_that_has_become_long_begins_anew_and_says_the_same(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    here = await coordinator(brokers, 1)
    member = await begin(brokers, here)
    for offset in range(30):
        assert await commit(brokers, here, offset, member) == 0
    grouping, machine = brokers[here].coordinators.groups, brokers.machine(here)
    end = partition(brokers, here).log.end
    await machine.run(grouping.shorten(grouping.local("g"), at_least=end + 1))
    assert partition(brokers, here).log.start == 0, "it is not long yet"
    await machine.run(grouping.shorten(grouping.local("g"), at_least=10))
    await brokers.until(lambda: all(partition(brokers, one).log.start == end for one in brokers.ids))
    assert partition(brokers, here).log.end - end == 2, "the group, and how far it has read"
    asked = next(one for one in brokers.ids if one != here)
    brokers.kill(here, power_loss=True)
    await brokers.until(lambda: any(partition(brokers, one).leads for one in brokers.ids))
    there = await coordinator(brokers, asked)
    assert await heartbeat(brokers, there, member) == 0
    assert await committed(brokers, there) == (0, 29)


@simulated(count=1, transaction_state_log_num_partitions=1, **FEW)
async def test_a_long_log_is_cut_before_a_transaction_that_is_open(brokers: Brokers) -> None:
    """With many producers there is always one."""
    await brokers.make_topic("t", (1,))
    here = await coordinator(brokers, 1)
    for offset in range(30):
        assert await commit(brokers, here, offset) == 0
    begin = partition(brokers, here).log.end
    one = Transacted(lambda request, version: brokers.call(here, request, version))
    await one.begin()
    assert await one.commit_offset(BESIDE_G, "t", 77, version=5) == 0
    grouping = brokers[here].coordinators.groups
    await brokers.machine(here).run(grouping.shorten(grouping.local("g"), at_least=10))
    await brokers.until(lambda: partition(brokers, here).log.start == begin)
    brokers.kill(here, power_loss=True)
    await brokers.start(here)
    await brokers.until(lambda: partition(brokers, here).leads)
    assert await one.end(committed=True, version=5) == 0
    await one.until("CompleteCommit")
    assert await group_offset(one.call, BESIDE_G, "t", stable=True) == (0, 77)
    assert await committed(brokers, here) == (0, 29)
