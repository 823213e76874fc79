"""`ClassicMember`, step by step: each test is one history of requests and responses."""

from typing import Any

import pytest

from tailrace.client.faults import Refused
from tailrace.client.groups.classic_member import ClassicMember, State
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, TopicSeen
from tailrace.client.groups.subscriptions import decode_assignment, encode_assignment, encode_subscription
from tailrace.model.ids import Id, PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.join_group import JoinedMember, JoinGroupRequest, JoinGroupResponse
from tailrace.wire.messages.leave_group import LeaveGroupRequest
from tailrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

FIRST, SECOND = PartitionName("t", 0), PartitionName("t", 1)
TOPICS = {"t": TopicSeen(Id(b"t" * 16), 2)}


def new(**options: Any) -> ClassicMember:
    given: dict[str, Any] = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000, **options}
    return ClassicMember(MemberOptions(group="g", topics=("t",), **given), now=0.0)


def joined(**fields: Any) -> JoinGroupResponse:
    return JoinGroupResponse(
        **{"generation_id": 1, "protocol_name": "range", "leader": "other", "member_id": "m", **fields}
    )


def synced(*partitions: PartitionName) -> SyncGroupResponse:
    return SyncGroupResponse(assignment=encode_assignment(partitions))


def beat(member: ClassicMember, code: Error, now: float) -> Events:
    assert isinstance(member.next_request(now), HeartbeatRequest)
    return member.answered(HeartbeatResponse(error_code=code), now)


def stable(*partitions: PartitionName, **options: Any) -> ClassicMember:
    """A follower that owns these partitions since 0.0."""
    member = new(**options)
    member.next_request(0.0)
    member.answered(joined(), 0.0)
    member.next_request(0.0)
    member.answered(synced(*partitions), 0.0)
    assert member.state is State.STABLE
    return member


def test_a_follower_joins_and_syncs() -> None:
    member = new(instance_id=None)
    request = member.next_request(0.0)
    assert isinstance(request, JoinGroupRequest)
    assert (request.group_id, request.member_id, request.session_timeout_ms) == ("g", "", 6000)
    assert [one.name for one in request.protocols] == ["range", "roundrobin"]
    assert request.protocols[0].metadata == encode_subscription(("t",))
    assert member.identity is None

    assert member.answered(JoinGroupResponse(error_code=Error.MEMBER_ID_REQUIRED, member_id="m"), 0.1) == ()
    again = member.next_request(0.1)
    assert isinstance(again, JoinGroupRequest)
    assert again.member_id == "m"

    assert member.answered(joined(), 0.2) == ()
    sync = member.next_request(0.2)
    assert isinstance(sync, SyncGroupRequest)
    assert (sync.generation_id, sync.member_id, sync.protocol_name, sync.assignments) == (1, "m", "range", ())

    assert member.answered(synced(FIRST), 0.3) == (Event("assigned", (FIRST,)),)
    assert member.assignment == (FIRST,)
    assert member.identity == Identity("m", 1, None)
    assert member.wake_at == pytest.approx(1.3)
    assert member.next_request(1.2) is None
    assert isinstance(member.next_request(1.3), HeartbeatRequest)


def test_the_leader_assigns_with_fresh_metadata() -> None:
    member = new()
    member.next_request(0.0)
    both = tuple(JoinedMember(member_id=name, metadata=encode_subscription(("t",))) for name in ("m", "n"))
    member.answered(joined(leader="m", members=both), 0.0)
    assert member.state is State.ASSIGNING
    assert member.needs_topics
    assert member.topics == ("t",)
    assert member.next_request(5.0) is None
    assert member.learnt(TOPICS, 5.0) == ()
    sync = member.next_request(5.0)
    assert isinstance(sync, SyncGroupRequest)
    found = {one.member_id: decode_assignment(one.assignment) for one in sync.assignments}
    assert found == {"m": (FIRST,), "n": (SECOND,)}

    member.answered(synced(FIRST), 5.0)
    assert member.learnt(TOPICS, 6.0) == ()  # nothing new
    grown = {"t": TopicSeen(Id(b"t" * 16), 3)}
    assert member.learnt(grown, 7.0) == (Event("revoked", (FIRST,)),)  # the leader begins a rebalance


def test_a_static_leader_that_is_back_does_not_assign() -> None:
    member = new(instance_id="i")
    member.next_request(0.0)
    both = tuple(JoinedMember(member_id=name, metadata=encode_subscription(("t",))) for name in ("m", "n"))
    member.answered(joined(leader="m", members=both, skip_assignment=True), 0.0)
    sync = member.next_request(0.0)
    assert isinstance(sync, SyncGroupRequest)
    assert sync.assignments == ()
    member.answered(synced(FIRST), 0.0)
    assert member.learnt(TOPICS, 1.0) == ()  # that is how the generation was assigned
    assert member.learnt({"t": TopicSeen(Id(b"t" * 16), 3)}, 2.0) == (Event("revoked", (FIRST,)),)


def test_a_rebalance_waits_until_the_partitions_are_released() -> None:
    member = stable(FIRST)
    (revoked,) = beat(member, Error.REBALANCE_IN_PROGRESS, 1.0)
    assert revoked == Event("revoked", (FIRST,))
    assert member.identity == Identity("m", 1, None)  # it may commit
    assert beat(member, Error.REBALANCE_IN_PROGRESS, 2.0) == ()  # and stays in the group meanwhile
    assert member.assignment == (FIRST,)
    member.released(Event("revoked", (FIRST,)), 2.5)  # another event, of an earlier rebalance
    assert member.state is State.REVOKING
    member.released(revoked, 2.5)
    assert not member.assignment
    assert member.identity is None
    request = member.next_request(2.5)
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == "m"


def test_without_partitions_it_rejoins_at_once() -> None:
    member = stable()
    assert beat(member, Error.REBALANCE_IN_PROGRESS, 1.0) == ()
    assert isinstance(member.next_request(1.0), JoinGroupRequest)


def test_partitions_are_released_while_a_heartbeat_is_under_way() -> None:
    member = stable(FIRST)
    (revoked,) = beat(member, Error.REBALANCE_IN_PROGRESS, 1.0)
    assert isinstance(member.next_request(2.0), HeartbeatRequest)
    member.released(revoked, 2.0)
    assert member.answered(HeartbeatResponse(error_code=Error.REBALANCE_IN_PROGRESS), 2.1) == ()
    assert isinstance(member.next_request(2.1), JoinGroupRequest)


@pytest.mark.parametrize(("code", "member_id"), [(Error.UNKNOWN_MEMBER_ID, ""), (Error.ILLEGAL_GENERATION, "m")])
def test_a_member_that_is_not_known_has_lost_its_partitions(code: Error, member_id: str) -> None:
    member = stable(FIRST)
    assert beat(member, code, 1.0) == (Event("lost", (FIRST,)),)
    assert (member.assignment, member.identity) == ((), None)
    request = member.next_request(1.0)
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == member_id


def test_partitions_are_lost_while_they_are_being_released() -> None:
    member = stable(FIRST)
    (revoked,) = beat(member, Error.REBALANCE_IN_PROGRESS, 1.0)
    assert beat(member, Error.UNKNOWN_MEMBER_ID, 2.0) == (Event("lost", (FIRST,)),)
    member.released(revoked, 3.0)
    assert member.state is State.JOINING


@pytest.mark.parametrize("code", [Error.FENCED_INSTANCE_ID, Error.GROUP_AUTHORIZATION_FAILED])
def test_errors_that_nothing_mends(code: Error) -> None:
    member = stable(FIRST, instance_id="i")
    assert beat(member, code, 1.0) == (Event("lost", (FIRST,)),)
    assert isinstance(member.failure, Refused)
    assert member.next_request(100.0) is None
    assert member.leave() is None


def test_a_coordinator_that_does_not_answer_takes_nothing_away() -> None:
    member = stable(FIRST)
    pauses, now = [], 1.0
    for failure in (None, Error.COORDINATOR_LOAD_IN_PROGRESS, None, Error.NOT_COORDINATOR, None, None, None, None):
        assert isinstance(member.next_request(now), HeartbeatRequest)
        events = (
            member.unanswered(now) if failure is None else member.answered(HeartbeatResponse(error_code=failure), now)
        )
        assert events == ()
        pauses.append(member.wake_at - now)
        now = member.wake_at
    assert pauses == pytest.approx([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert member.assignment == (FIRST,)
    beat(member, Error.NONE, now)
    assert member.wake_at == pytest.approx(now + 1.0)


@pytest.mark.parametrize("code", [Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION])
def test_a_sync_that_comes_too_late_joins_again(code: Error) -> None:
    member = new()
    member.next_request(0.0)
    member.answered(joined(), 0.0)
    member.next_request(0.0)
    assert member.answered(SyncGroupResponse(error_code=code), 0.0) == ()
    request = member.next_request(0.0)
    assert isinstance(request, JoinGroupRequest)
    assert request.member_id == "m"


def test_a_broker_that_refuses_again_and_again_is_not_hammered() -> None:
    member, now = new(), 0.0
    for _ in range(20):
        assert isinstance(member.next_request(now), JoinGroupRequest)
        member.answered(JoinGroupResponse(error_code=Error.UNKNOWN_MEMBER_ID), now)
        now = member.wake_at
    assert now > 10.0


def test_damaged_bytes_of_others_end_the_membership() -> None:
    member = new()
    member.next_request(0.0)
    member.answered(joined(leader="m", members=(JoinedMember(member_id="m", metadata=b"\x00"),)), 0.0)
    assert "cannot read a subscription in group g" in str(member.failure)
    member = new()
    member.next_request(0.0)
    member.answered(joined(), 0.0)
    member.answered(SyncGroupResponse(assignment=b"\x00\x00\x00"), 0.0)
    assert "cannot read the assignment of group g" in str(member.failure)


def test_leaving() -> None:
    request = stable(FIRST).leave()
    assert isinstance(request, LeaveGroupRequest)
    assert [one.member_id for one in request.members] == ["m"]
    assert stable(FIRST, instance_id="i").leave() is None  # its partitions wait for a restart
    assert new().leave() is None
    member = stable(FIRST)
    member.leave()
    assert member.answered(HeartbeatResponse(error_code=Error.UNKNOWN_MEMBER_ID), 1.0) == ()
    assert member.next_request(10.0) is None
