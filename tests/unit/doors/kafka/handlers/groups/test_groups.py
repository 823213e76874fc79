"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup, in every version."""

import asyncio

from tailrace.wire.errors import Error
from tailrace.wire.messages.heartbeat import HeartbeatRequest
from tailrace.wire.messages.join_group import JoinGroupRequest
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.sync_group import SyncGroupRequest
from tests.unit.doors.kafka.grouped import SETTINGS, members
from tests.unit.doors.kafka.served import Served, versions, with_broker


@with_broker(**SETTINGS)
async def test_every_version_joins_syncs_and_leaves(served: Served) -> None:
    for version in versions(11):
        async with members(served, 1, f"g{version}") as (one,):
            joined = await one.join(version)
            assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
            assert joined.leader == joined.member_id == joined.members[0].member_id != ""
            assert joined.protocol_type == ("consumer" if version >= 7 else None)
            synced = await one.sync({one.id: b"mine"}, min(version, 5))
            assert (synced.error_code, synced.assignment) == (0, b"mine")
            assert await one.heartbeat(min(version, 4)) == 0
            left = await one.leave(min(version, 5))
            assert [left.error_code, *(member.error_code for member in left.members)] in ([0], [0, 0])
            assert await one.heartbeat() == Error.UNKNOWN_MEMBER_ID


@with_broker(**SETTINGS)
async def test_two_members_wait_for_each_other(served: Served) -> None:
    async with members(served, 2) as (first, second):
        await first.begin()
        joining = asyncio.create_task(second.join())
        while await first.heartbeat() != Error.REBALANCE_IN_PROGRESS:  # noqa: ASYNC110
            await asyncio.sleep(0)
        joined = await first.join()
        assert (await joining).leader == first.id
        assert sorted(one.member_id for one in joined.members) == sorted((first.id, second.id))
        waiting = asyncio.create_task(second.sync())
        assert (await first.sync({first.id: b"1", second.id: b"2"})).assignment == b"1"
        assert (await waiting).assignment == b"2"


@with_broker(**SETTINGS)
async def test_a_client_with_the_longest_name_there_can_be_gets_an_id_that_can_be_said(served: Served) -> None:
    for version in (3, 9):
        async with members(served, 1, f"g{version}", client_id="ä" * 16_383) as (one,):
            joined = await one.join(version)
            assert joined.error_code == 0
            assert (await one.sync({one.id: b"mine"})).assignment == b"mine"


@with_broker(**SETTINGS)
async def test_a_member_whose_session_times_out_is_removed(served: Served) -> None:
    async with members(served, 2) as (first, second):
        second.session_timeout_ms = 200
        await second.begin()
        joining = asyncio.create_task(first.join())
        joined = await joining  # the silent one is not waited for longer than its session
        assert [one.member_id for one in joined.members] == [first.id]
        assert await second.heartbeat() == Error.UNKNOWN_MEMBER_ID


@with_broker(**SETTINGS)
async def test_a_static_member_comes_back_and_the_one_before_is_fenced(served: Served) -> None:
    async with members(served, 2) as (first, second):
        first.instance_id = second.instance_id = "static"
        await first.begin()
        joined = await second.join()
        assert (joined.generation_id, joined.skip_assignment) == (1, True)
        assert (await second.sync()).assignment == b"all"
        assert await first.heartbeat() == Error.FENCED_INSTANCE_ID
        assert (await first.sync()).error_code == Error.FENCED_INSTANCE_ID
        assert (await first.join()).error_code == Error.FENCED_INSTANCE_ID
        (left,) = (await first.leave()).members
        assert left.error_code == Error.FENCED_INSTANCE_ID
        gone = LeaveGroupRequest(group_id="g", members=(LeavingMember(member_id="", group_instance_id="static"),))
        assert (await served.call(gone, 5)).members[0].error_code == 0


@with_broker(**SETTINGS, group_max_size=1)
async def test_refusals(served: Served) -> None:
    async with members(served, 2) as (first, second):
        await first.begin()
        assert (await second.join()).error_code == Error.GROUP_MAX_SIZE_REACHED
        first.session_timeout_ms = 99
        assert (await first.join()).error_code == Error.INVALID_SESSION_TIMEOUT
        first.session_timeout_ms = 10_000
        first.generation = 1
        assert (await first.join(protocol_type="connect")).error_code == Error.INCONSISTENT_GROUP_PROTOCOL
        first.generation = 7
        assert await first.heartbeat() == Error.ILLEGAL_GENERATION
        assert (await first.sync()).error_code == Error.ILLEGAL_GENERATION
        await first.leave()
        second.id = "nobody"
        assert (await second.join()).error_code == Error.UNKNOWN_MEMBER_ID
        second.id = "nobody"
        assert (await second.leave()).members[0].error_code == Error.UNKNOWN_MEMBER_ID
        assert (await second.leave(2)).error_code == Error.UNKNOWN_MEMBER_ID


@with_broker(**SETTINGS)
async def test_a_group_needs_a_name_and_a_coordinator(served: Served) -> None:
    nameless = (
        (JoinGroupRequest(group_id="", session_timeout_ms=9, member_id="", protocol_type="", protocols=()), 9),
        (SyncGroupRequest(group_id="", generation_id=0, member_id=""), 5),
        (HeartbeatRequest(group_id="", generation_id=0, member_id=""), 4),
        (LeaveGroupRequest(group_id="", members=()), 5),
    )
    for request, version in nameless:
        assert (await served.call(request, version)).error_code == Error.INVALID_GROUP_ID
    # Nobody has looked for a coordinator yet, so there is none.
    early = HeartbeatRequest(group_id="g", generation_id=0, member_id="")
    assert (await served.call(early, 4)).error_code == Error.NOT_COORDINATOR


@with_broker(**SETTINGS | {"group_initial_rebalance_delay_ms": 200})
async def test_a_group_that_begins_waits_for_more(served: Served) -> None:
    async with members(served, 2) as (first, second):
        joined = await asyncio.gather(first.join(3), second.join(3))
        assert [one.generation_id for one in joined] == [1, 1]
        assert sorted(len(one.members) for one in joined) == [0, 2]
