"""`ConsumerMember` (KIP-848), step by step: each test is one history of heartbeats."""

from typing import Any

import pytest

from tailrace.client.faults import Refused
from tailrace.client.groups.consumer_member import ConsumerMember, State
from tailrace.client.groups.member import Event, Events, Identity, MemberOptions, TopicSeen
from tailrace.model.ids import Id, PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OwnedTopic,
)
from tests.unit.client.heartbeat_answers import T, heartbeat_answer

FIRST, SECOND, THIRD = (PartitionName("t", number) for number in range(3))
TOPICS = {"t": TopicSeen(T, 3)}


def new(**options: Any) -> ConsumerMember:
    member = ConsumerMember(MemberOptions(group="g", topics=("t",), rebalance_timeout_ms=5000, **options), "m", now=0.0)
    member.learnt(TOPICS, 0.0)
    return member


def sent(member: ConsumerMember, now: float) -> ConsumerGroupHeartbeatRequest:
    request = member.next_request(now)
    assert request is not None
    return request


def answer(member: ConsumerMember, now: float, *assigned: int, epoch: int = 1, changed: bool = True) -> Events:
    response = heartbeat_answer(ConsumerGroupHeartbeatResponse, *assigned, epoch=epoch, changed=changed)
    return member.answered(response, now)


def owned(request: ConsumerGroupHeartbeatRequest) -> list[int] | None:
    found = request.topic_partitions
    return None if found is None else [one for topic in found for one in topic.partitions]


def refuse(member: ConsumerMember, code: Error, now: float) -> Events:
    sent(member, now)
    return member.answered(ConsumerGroupHeartbeatResponse(error_code=code), now)


def stable(*assigned: int, **options: Any) -> ConsumerMember:
    """A member that owns these partitions, and has reported so at 0.0."""
    member = new(**options)
    sent(member, 0.0)
    answer(member, 0.0, *assigned)
    sent(member, 0.0)
    answer(member, 0.0, changed=False)
    assert member.wake_at == 1.0
    return member


def test_joining() -> None:
    member = new()
    assert (member.state, member.identity) == (State.JOINING, None)
    join = sent(member, 0.0)
    assert (join.group_id, join.member_id, join.member_epoch) == ("g", "m", 0)
    assert (join.subscribed_topic_names, join.rebalance_timeout_ms, owned(join)) == (("t",), 5000, [])
    assert answer(member, 0.1, 0, 1, epoch=3) == (Event("assigned", (FIRST, SECOND)),)
    assert member.identity == Identity("m", 3, None)
    assert member.assignment == (FIRST, SECOND)
    report = sent(member, 0.1)  # what it owns, at once; and nothing that has not changed
    assert (report.member_epoch, owned(report)) == (3, [0, 1])
    assert (report.subscribed_topic_names, report.rebalance_timeout_ms) == (None, -1)
    assert answer(member, 0.2, epoch=3, changed=False) == ()
    assert member.next_request(1.1) is None
    assert owned(sent(member, 1.2)) is None


def test_a_revocation_is_reported_after_it_was_released() -> None:
    member = stable(0, 1)
    sent(member, 1.0)
    (revoked,) = answer(member, 1.0, 0)
    assert revoked == Event("revoked", (SECOND,))
    assert member.state is State.REVOKING
    assert member.identity == Identity("m", 1, None)  # it may commit
    assert member.assignment == (FIRST, SECOND)
    assert owned(sent(member, 2.0)) is None  # heartbeats go on
    assert answer(member, 2.0, changed=False) == ()
    assert member.released(Event("revoked", (SECOND,)), 2.1) == ()  # another event, of an earlier assignment
    assert member.state is State.REVOKING
    assert member.released(revoked, 2.5) == ()
    assert list(member.assignment) == [FIRST]
    assert owned(sent(member, 2.5)) == [0]
    assert answer(member, 2.5, 0, 2, epoch=2) == (Event("assigned", (THIRD,)),)
    assert owned(sent(member, 2.5)) == [0, 2]


def test_new_partitions_come_after_the_revoked_ones_are_released() -> None:
    member = stable(0)
    sent(member, 1.0)
    (revoked,) = answer(member, 1.0, 2)
    assert member.released(revoked, 1.1) == (Event("assigned", (THIRD,)),)
    assert owned(sent(member, 1.1)) == [2]


def test_partitions_are_released_while_a_heartbeat_is_under_way() -> None:
    member = stable(0, 1)
    sent(member, 1.0)
    (revoked,) = answer(member, 1.0, 0)
    sent(member, 2.0)
    member.released(revoked, 2.0)
    assert answer(member, 2.1, changed=False) == ()
    assert owned(sent(member, 2.1)) == [0]


def test_after_a_lost_response_the_heartbeat_says_everything() -> None:
    member = stable(0)
    sent(member, 1.0)
    assert member.unanswered(1.0) == ()
    assert member.assignment == (FIRST,)
    full = sent(member, 1.0)
    assert (full.subscribed_topic_names, full.rebalance_timeout_ms, owned(full)) == (("t",), 5000, [0])
    assert full.member_epoch == 1
    assert answer(member, 1.1, 0, 1, epoch=2) == (Event("assigned", (SECOND,)),)


@pytest.mark.parametrize("code", [Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_has_lost_its_partitions_and_joins_again(code: Error) -> None:
    member = stable(0, 1)
    assert refuse(member, code, 1.0) == (Event("lost", (FIRST, SECOND)),)
    assert (member.state, member.assignment, member.identity) == (State.JOINING, (), None)
    join = sent(member, 1.0)
    assert (join.member_id, join.member_epoch, join.subscribed_topic_names, owned(join)) == ("m", 0, ("t",), [])
    assert answer(member, 1.1, 1, epoch=7) == (Event("assigned", (SECOND,)),)


def test_partitions_are_lost_while_they_are_being_released() -> None:
    member = stable(0, 1)
    sent(member, 1.0)
    (revoked,) = answer(member, 1.0, 0)
    assert refuse(member, Error.FENCED_MEMBER_EPOCH, 2.0) == (Event("lost", (FIRST, SECOND)),)
    assert member.released(revoked, 2.1) == ()
    assert member.state is State.JOINING


@pytest.mark.parametrize("code", [Error.UNRELEASED_INSTANCE_ID, Error.FENCED_INSTANCE_ID, Error.UNSUPPORTED_ASSIGNOR])
def test_errors_that_nothing_mends(code: Error) -> None:
    member = stable(0, instance_id="i")
    assert refuse(member, code, 1.0) == (Event("lost", (FIRST,)),)
    assert isinstance(member.failure, Refused)
    assert member.next_request(100.0) is None
    assert member.leave() is None


def test_a_coordinator_that_does_not_answer_takes_nothing_away() -> None:
    member, now = stable(0), 1.0
    for _ in range(5):
        assert refuse(member, Error.COORDINATOR_NOT_AVAILABLE, now) == ()
        assert member.learnt(TOPICS, now) == ()  # which does not shorten the pause
        now = member.wake_at
    assert now == pytest.approx(1.0 + 0.0 + 0.05 + 0.1 + 0.2 + 0.4)
    assert member.assignment == (FIRST,)


def test_partitions_of_a_topic_whose_name_is_not_known_yet() -> None:
    member = ConsumerMember(MemberOptions(group="g", topics=("t",)), "m", now=0.0)
    sent(member, 0.0)
    assert answer(member, 0.0, 0) == ()
    assert member.needs_topics
    assert owned(sent(member, 1.0)) is None
    answer(member, 1.0, changed=False)
    assert member.learnt(TOPICS, 1.5) == (Event("assigned", (FIRST,)),)
    assert not member.needs_topics
    assert owned(sent(member, 1.5)) == [0]


def test_a_topic_that_was_made_anew_is_another_topic() -> None:
    member = stable(0)
    again = Id(b"u" * 16)
    member.learnt({"t": TopicSeen(again, 1)}, 0.5)
    sent(member, 1.0)
    assignment = Assignment(topic_partitions=(OwnedTopic(topic_id=again, partitions=(0,)),))
    (revoked,) = member.answered(
        ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=1000, assignment=assignment), 1.0
    )
    assert revoked == Event("revoked", (FIRST,))
    assert member.released(revoked, 1.1) == (Event("assigned", (FIRST,)),)


def test_leaving() -> None:
    request = stable(0).leave()
    assert request is not None
    assert (request.member_epoch, request.instance_id) == (-1, None)
    static = stable(0, instance_id="i").leave()
    assert static is not None
    assert (static.member_epoch, static.instance_id) == (-2, "i")
