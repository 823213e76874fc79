"""Request and response headers, compared with kio's, and damaged headers."""

import io

import pytest
from kio.schema.request_header.v1.header import RequestHeader as RequestHeader1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeader2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeader0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeader1
from kio.serial import entity_writer
from kio.static.primitive import i16, i32

from tailrace.wire.headers import read_request_header, read_response_header, request_header, response_header
from tailrace.wire.primitives import WireError, uvarint

FLEXIBLE_SINCE = {3: 9, 18: 3}
UNKNOWN_TAG = b"\1" + uvarint(200) + b"\3abc"


@pytest.mark.parametrize("client_id", ["me", "", "ü", None])
@pytest.mark.parametrize(("version", "reference"), [(8, RequestHeader1), (9, RequestHeader2)])
def test_request_headers_equal_kio(client_id: str | None, version: int, reference: type) -> None:
    data = request_header(3, version, -5, client_id, flexible=version >= 9)
    buffer = io.BytesIO()
    theirs = reference(
        request_api_key=i16(3), request_api_version=i16(version), correlation_id=i32(-5), client_id=client_id
    )
    entity_writer(reference)(buffer, theirs)
    assert data == buffer.getvalue()
    framed = b"size" + data + b"body"
    assert read_request_header(framed, 4, FLEXIBLE_SINCE) == (3, version, -5, client_id, 4 + len(data))


@pytest.mark.parametrize(("api_key", "reference"), [(3, ResponseHeader1), (18, ResponseHeader0)])
def test_response_headers_equal_kio_and_that_of_api_versions_is_version_0(api_key: int, reference: type) -> None:
    data = response_header(api_key, 7, flexible=True)
    buffer = io.BytesIO()
    entity_writer(reference)(buffer, reference(correlation_id=i32(7)))
    assert data == buffer.getvalue()
    assert read_response_header(b"size" + data, 4, api_key, flexible=True) == (7, 4 + len(data))
    assert response_header(api_key, 7, flexible=False) == b"\0\0\0\7"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_unknown_tags_are_skipped_in_any_buffer(kind: type) -> None:
    data = request_header(3, 9, 1, "me", flexible=True)[:-1] + UNKNOWN_TAG
    assert read_request_header(kind(data), 0, FLEXIBLE_SINCE) == (3, 9, 1, "me", len(data))
    answer = response_header(3, 1, flexible=True)[:-1] + UNKNOWN_TAG
    assert read_response_header(kind(answer), 0, 3, flexible=True) == (1, len(answer))


def test_the_header_of_an_unknown_api_is_read_as_version_1() -> None:
    data = request_header(4711, 99, 1, "me", flexible=False)
    assert read_request_header(data, 0, FLEXIBLE_SINCE) == (4711, 99, 1, "me", len(data))


def test_every_truncated_header_is_rejected() -> None:
    request = request_header(3, 9, 1, "me", flexible=True)[:-1] + UNKNOWN_TAG
    answer = response_header(3, 1, flexible=True)[:-1] + UNKNOWN_TAG
    for whole in (request, request_header(3, 8, 1, "me", flexible=False)):
        for size in range(len(whole)):
            with pytest.raises(WireError):
                read_request_header(whole[:size], 0, FLEXIBLE_SINCE)
    for size in range(len(answer)):
        with pytest.raises(WireError):
            read_response_header(answer[:size], 0, 3, flexible=True)


def test_a_client_id_that_is_not_utf8_is_rejected() -> None:
    with pytest.raises(WireError, match="not UTF-8"):
        read_request_header(b"\0\3\0\0\0\0\0\1\0\1\xff", 0, FLEXIBLE_SINCE)


def test_a_client_id_too_long_is_rejected() -> None:
    with pytest.raises(WireError, match="cannot be encoded"):
        request_header(3, 1, 1, "x" * 32768, flexible=False)
