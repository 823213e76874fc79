"""Headers in both orders, byte by byte."""

import errno
import sys

import pytest

from tailrace.doors.dmqp.codec import HEADER_BYTES, Codec, Header, HeaderOrder, Method, Status

WHOLE = Header(timestamp=0x0102030405060708, length=0x0A0B0C0D, method=4, topic_id=0xFE, status=90)


def test_the_documented_order() -> None:
    assert Codec("documented").encoded(WHOLE).hex() == "0102030405060708" + "0a0b0c0d" + "04fe5a00"


def test_the_order_of_the_c_program() -> None:
    assert Codec("program").encoded(WHOLE).hex() == "0102030405060708" + "0a0b0c0d" + "0004fe5a"


@pytest.mark.parametrize("order", ["documented", "program"])
def test_a_header_is_read_as_it_was_written(order: HeaderOrder) -> None:
    codec = Codec(order)
    data = b"???" + codec.encoded(WHOLE)
    assert codec.header(data, 3) == WHOLE
    assert len(data) == 3 + HEADER_BYTES


def test_the_unused_byte_means_nothing() -> None:
    data = bytearray(Codec().encoded(WHOLE))
    data[15] = 0xFF
    assert Codec().header(data) == WHOLE


def test_a_response_repeats_the_topic_and_carries_the_payload() -> None:
    codec = Codec()
    response = codec.response(9, Status.OK, 1_700_000_000, b"hello")
    assert codec.header(response) == Header(1_700_000_000, 5, Method.RESPONSE, 9, Status.OK)
    assert response[HEADER_BYTES:] == b"hello"


@pytest.mark.skipif(sys.platform != "linux", reason="the statuses are the errors of Linux")
def test_statuses_are_the_errors_of_linux() -> None:
    assert {status.name: status.value for status in Status if status} == {
        status.name: getattr(errno, status.name) for status in Status if status
    }
