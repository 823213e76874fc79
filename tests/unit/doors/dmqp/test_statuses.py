"""Every failure of the client of the log has a status, and only what may pass is EAGAIN."""

import pytest

from tailrace.client.cluster import Retry, Unanswered
from tailrace.client.faults import ClientError, ConnectionLost, Refused, Unavailable
from tailrace.client.producer import NotWritten
from tailrace.doors.dmqp.codec import Status
from tailrace.doors.dmqp.statuses import NotAwaited, TooLargeToSend, status_of
from tailrace.wire.errors import Error


@pytest.mark.parametrize("error", [one for one in Error if one is not Error.NONE], ids=lambda one: one.name)
def test_every_error_of_a_broker(error: Error) -> None:
    status = status_of(Refused(error, "push"))
    if error in (Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE):
        assert status is Status.EMSGSIZE
    else:
        assert status is (Status.EAGAIN if error.retriable else Status.EIO)


@pytest.mark.parametrize(
    "error",
    [
        Retry("no leader"),
        Unanswered("no answer"),
        Unavailable("no quorum"),
        ConnectionLost("the broker stops"),
        ClientError("something else"),
        NotWritten("expired"),
        NotWritten("who knows", may_be_written=True),
        TimeoutError(),
        ConnectionResetError(),
        NotAwaited(),
    ],
    ids=repr,
)
def test_what_may_pass_is_eagain(error: Exception) -> None:
    assert status_of(error) is Status.EAGAIN


def test_a_message_that_was_refused_has_the_status_of_the_refusal() -> None:
    assert status_of(NotWritten("too large", error=Error.MESSAGE_TOO_LARGE)) is Status.EMSGSIZE
    assert status_of(NotWritten("no rights", error=Error.TOPIC_AUTHORIZATION_FAILED)) is Status.EIO


def test_a_message_that_may_be_written_all_the_same_is_never_said_to_have_failed() -> None:
    assert status_of(NotWritten("who knows", may_be_written=True, error=Error.MESSAGE_TOO_LARGE)) is Status.EAGAIN


def test_a_message_of_another_door_that_is_too_large() -> None:
    assert status_of(TooLargeToSend()) is Status.EMSGSIZE


def test_a_mistake_of_ours_is_eio() -> None:
    assert status_of(KeyError("bug")) is Status.EIO
