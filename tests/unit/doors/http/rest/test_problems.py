"""Errors in the form of RFC 9457: every fault, every code and every error of the client has one."""

from typing import Any, get_args

import pytest

from tailrace.client.faults import (
    AssignmentLost,
    Busy,
    ClientError,
    ConnectionLost,
    NoSuchPartition,
    NotAcknowledged,
    OutcomeUnknown,
    Refused,
    SecurityRefused,
    Unavailable,
    Unsupported,
)
from tailrace.client.producer import NotWritten
from tailrace.client.producers import TooManyProducers
from tailrace.doors.http.rest import kinds
from tailrace.doors.http.rest.problems import Problem, invalid, problem_of
from tailrace.doors.http.rest.schema import Invalid
from tailrace.model.faults import AnyFault, NotLeader, TopicExists
from tailrace.model.ids import PartitionName
from tailrace.model.limits import FAULT_TEXT_MAX_CHARS
from tailrace.wire.errors import Error

RETRY_AFTER = "retry-after"


def status_of(error: Exception) -> int:
    found = problem_of(error)
    assert found is not None
    return found.kind.status


@pytest.mark.parametrize("code", list(Error), ids=lambda one: one.name)
def test_every_code_has_a_kind(code: Error) -> None:
    kind = kinds.kind_of_error(code)
    assert kind in kinds.all_kinds()
    if code.retriable and code not in (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.ELECTION_NOT_NEEDED):
        assert kind.retry_after_s is not None
        assert kind.status in (429, 503)


def test_no_code_has_two_kinds() -> None:
    named = [code for codes in kinds._CODES.values() for code in codes]
    assert sorted(named) == sorted(Error)


@pytest.mark.parametrize("fault", get_args(AnyFault), ids=lambda one: one.__name__)
def test_every_fault_has_a_problem(fault: Any) -> None:
    found = problem_of(fault("why"))
    assert found is not None
    assert found.document()["detail"] == "why"


@pytest.mark.parametrize(
    ("error", "status", "slug"),
    [
        (Refused(Error.UNKNOWN_TOPIC_OR_PARTITION, "describe topic x"), 404, "no-such-topic"),
        (NoSuchPartition(PartitionName("x", 9), 3), 404, "no-such-topic"),
        (Refused(Error.TOPIC_ALREADY_EXISTS, "create topic x"), 409, "already-exists"),
        (Refused(Error.NOT_LEADER_OR_FOLLOWER, "write"), 503, "unavailable"),
        (Refused(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "write"), 503, "outcome-unknown"),
        (Refused(Error.TOPIC_AUTHORIZATION_FAILED, "write"), 403, "not-authorized"),
        (Refused(12345, "write"), 500, "unexpected-error"),
        (Unavailable("nobody answers"), 503, "unavailable"),
        (ConnectionLost("gone"), 503, "unavailable"),
        (ClientError("anything"), 503, "unavailable"),
        (NotWritten("too late"), 503, "unavailable"),
        (NotWritten("too late", may_be_written=True), 503, "outcome-unknown"),
        (NotWritten("too large", error=Error.MESSAGE_TOO_LARGE), 413, "too-large"),
        (NotAcknowledged("ended"), 410, "lock-ended"),
        (OutcomeUnknown("lost"), 503, "outcome-unknown"),
        (Busy("locked"), 429, "too-many-requests"),
        (AssignmentLost("lost"), 409, "conflict"),
        (Unsupported("old"), 501, "not-supported"),
        (SecurityRefused("login"), 502, "upstream-login-failed"),
        (TooManyProducers("full"), 429, "too-many-requests"),
        (TopicExists("x"), 409, "already-exists"),
        (NotLeader("x"), 503, "unavailable"),
        (Invalid("limit", "is wrong"), 400, "invalid-request"),
    ],
)
def test_what_clients_are_told(error: Exception, status: int, slug: str) -> None:
    found = problem_of(error)
    assert found is not None
    assert (found.kind.status, found.kind.slug) == (status, slug)
    assert found.document()["type"] == f"urn:tailrace:problem:{slug}"
    assert (RETRY_AFTER in found.headers) == (status in (429, 503))


def test_a_bug_is_no_problem() -> None:
    assert problem_of(AssertionError("oops")) is None


def test_the_code_of_a_broker_is_told() -> None:
    found = problem_of(Refused(Error.INVALID_CONFIG, "change topic x", "retention.ms must be a number"))
    assert found is not None
    assert found.document() == {
        "type": "urn:tailrace:problem:invalid-request",
        "title": "The request is not valid",
        "status": 400,
        "detail": "cannot change topic x: retention.ms must be a number",
        "code": "INVALID_CONFIG",
    }


def test_all_places_are_named() -> None:
    found = invalid([Invalid("limit", "is wrong"), Invalid("form", "is wrong, too")])
    assert found.document()["errors"] == [
        {"where": "limit", "why": "is wrong"},
        {"where": "form", "why": "is wrong, too"},
    ]


def test_long_details_are_cut() -> None:
    assert len(Problem(kinds.INVALID, "x" * 100_000).document()["detail"]) == FAULT_TEXT_MAX_CHARS + 1


def test_slugs_are_unique() -> None:
    slugs = [one.slug for one in kinds.all_kinds()]
    assert len(slugs) == len(set(slugs))
