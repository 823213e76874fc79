"""Everything that can go wrong has a status, and tells whether a retry helps."""

import typing

import pytest

from tailrace.client.cluster import Retry
from tailrace.client.faults import AssignmentLost, ClientError, Refused, Unavailable, Unsupported
from tailrace.client.producer import NotWritten
from tailrace.client.producers import TooManyProducers
from tailrace.doors.grpc.statuses import BadField, Code, code_of, status_of
from tailrace.model import faults
from tailrace.model.limits import FAULT_TEXT_MAX_CHARS
from tailrace.wire.errors import Error

EVERY_FAULT = [one for one in typing.get_args(faults.AnyFault) if one is not faults.RefusedElsewhere]


def test_every_error_of_kafka_has_a_code() -> None:
    assert [one for one in Error if code_of(one) is Code.OK] == [Error.NONE]


@pytest.mark.parametrize("fault", EVERY_FAULT, ids=lambda one: one.__name__)
def test_every_fault_has_a_status(fault: type[faults.Fault]) -> None:
    status = status_of(fault("because"))
    assert status.text == "because"
    assert status.code not in (Code.OK, Code.UNKNOWN)
    assert status.reason in Error.__members__


def test_what_may_be_tried_again_says_when() -> None:
    again: list[ClientError | Retry] = [
        Unavailable("no leader"),
        Retry("gone"),
        Refused(Error.NOT_ENOUGH_REPLICAS, "write"),
        TooManyProducers("x"),
    ]
    assert all(status_of(one).retry_s for one in again)
    never = [Refused(Error.MESSAGE_TOO_LARGE, "write"), AssignmentLost("x"), Unsupported("x"), ClientError("x")]
    assert not any(status_of(one).retry_s for one in never)


def test_a_record_that_may_be_written_says_so() -> None:
    unknown = status_of(NotWritten("timeout", may_be_written=True, error=Error.MESSAGE_TOO_LARGE))
    assert unknown.may_be_written
    assert unknown.code is Code.UNAVAILABLE
    refused = status_of(NotWritten("too large", error=Error.MESSAGE_TOO_LARGE))
    assert (refused.code, refused.reason) == (Code.INVALID_ARGUMENT, "MESSAGE_TOO_LARGE")


def test_a_wrong_field_is_named() -> None:
    status = status_of(BadField("records[3].partition", "-1 is less than 0"))
    assert (status.code, status.field) == (Code.INVALID_ARGUMENT, "records[3].partition")
    assert "-1" in status.field_text


def test_a_text_fits_into_a_trailer() -> None:
    assert len(status_of(ClientError("x" * 100_000)).text) <= FAULT_TEXT_MAX_CHARS + 1
