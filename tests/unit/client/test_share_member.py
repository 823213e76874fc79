"""`ShareMember` (KIP-932), step by step: each test is one history of heartbeats."""

import pytest

from tailrace.client.faults import Refused
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, TopicSeen
from tailrace.client.groups.share_member import ShareMember
from tailrace.model.ids import PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from tests.unit.client.heartbeat_answers import T, heartbeat_answer

FIRST, SECOND = PartitionName("t", 0), PartitionName("t", 1)
TOPICS = {"t": TopicSeen(T, 2)}


def new() -> ShareMember:
    return ShareMember(MemberOptions(group="g", topics=("t",)), "m", now=0.0)


def sent(member: ShareMember, now: float) -> ShareGroupHeartbeatRequest:
    request = member.next_request(now)
    assert request is not None
    return request


def answer(member: ShareMember, now: float, *assigned: int, epoch: int = 1, changed: bool = True) -> Events:
    response = heartbeat_answer(ShareGroupHeartbeatResponse, *assigned, epoch=epoch, changed=changed)
    return member.answered(response, now)


def test_it_joins_with_its_topics_and_then_says_only_that_it_is_there() -> None:
    member = new()
    request = sent(member, 0.0)
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "m", 0)
    assert request.subscribed_topic_names == ("t",)
    assert member.identity is None
    answer(member, 0.0, epoch=3)
    assert member.identity == Identity("m", 3, None)
    assert member.next_request(0.9) is None
    request = sent(member, 1.0)
    assert (request.member_epoch, request.subscribed_topic_names) == (3, None)


def test_an_assignment_is_in_force_at_once_when_its_topic_is_known() -> None:
    member = new()
    assert answer(member, 0.0, 0, 1) == ()
    assert member.needs_topics
    assert member.learnt(TOPICS, 0.0) == (Event("assigned", (FIRST, SECOND)),)
    assert member.assignment == (FIRST, SECOND)
    assert answer(member, 1.0, changed=False) == ()
    assert answer(member, 2.0, 1) == (Event("lost", (FIRST,)),)
    assert answer(member, 3.0, 0) == (Event("lost", (SECOND,)), Event("assigned", (FIRST,)))


@pytest.mark.parametrize("error", [Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_joins_again_and_reads_on(error: Error) -> None:
    member = new()
    member.learnt(TOPICS, 0.0)
    answer(member, 0.0, 0)
    assert member.answered(ShareGroupHeartbeatResponse(error_code=error), 1.0) == ()
    assert member.assignment == (FIRST,)
    request = sent(member, 1.0)
    assert (request.member_id, request.member_epoch, request.subscribed_topic_names) == ("m", 0, ("t",))


def test_after_a_lost_response_it_tells_everything_again_with_growing_pauses() -> None:
    member = new()
    answer(member, 0.0, epoch=4)
    member.unanswered(1.0)
    request = sent(member, 1.0)
    assert (request.member_epoch, request.subscribed_topic_names) == (4, ("t",))
    member.answered(ShareGroupHeartbeatResponse(error_code=Error.COORDINATOR_LOAD_IN_PROGRESS), 1.0)
    assert member.next_request(1.0) is None
    assert sent(member, 1.1).member_epoch == 4


def test_an_error_that_no_retry_mends_ends_it() -> None:
    member = new()
    member.learnt(TOPICS, 0.0)
    answer(member, 0.0, 0)
    refused = ShareGroupHeartbeatResponse(error_code=Error.GROUP_MAX_SIZE_REACHED, error_message="full")
    assert member.answered(refused, 1.0) == (Event("lost", (FIRST,)),)
    assert isinstance(member.failure, Refused)
    assert "full" in str(member.failure)
    assert member.next_request(99.0) is None
    assert member.leave() is None


def test_it_leaves_with_epoch_minus_one() -> None:
    member = new()
    answer(member, 0.0, 0)
    leaving = member.leave()
    assert leaving is not None
    assert (leaving.member_id, leaving.member_epoch) == ("m", -1)
    assert member.next_request(99.0) is None
    assert member.leave() is None
