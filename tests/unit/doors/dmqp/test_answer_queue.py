"""Responses leave in the order of the requests."""

from tailrace.doors.dmqp.answer_queue import ANSWER_MAX_S, AnswerQueue


def test_a_response_waits_for_those_before_it() -> None:
    queue = AnswerQueue()
    first, second, third = (queue.add(0, 10, 0.0) for _ in range(3))
    second.response, third.response = b"2", b"3"
    assert queue.due() == []
    assert queue.held_bytes == 30
    first.response = b"1"
    assert queue.due() == [b"1", b"2", b"3"]
    assert (len(queue), queue.held_bytes) == (0, 0)


def test_what_waits_too_long_is_overdue_and_what_has_a_response_is_not() -> None:
    queue = AnswerQueue()
    first, second, third = (queue.add(0, 0, at) for at in (0.0, 0.0, 5.0))
    second.response = b"2"
    assert queue.overdue(ANSWER_MAX_S - 1) == []
    assert queue.overdue(ANSWER_MAX_S) == [first]
    assert queue.overdue(ANSWER_MAX_S + 5) == [first, third]
    assert queue.unanswered() == [first, third]


def test_a_client_that_is_gone_leaves_nothing() -> None:
    queue = AnswerQueue()
    queue.add(0, 5, 0.0)
    queue.clear()
    assert (len(queue), queue.held_bytes, queue.due()) == (0, 0, [])
