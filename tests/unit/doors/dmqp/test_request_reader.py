"""Requests are found in any pieces of bytes, and what may not be kept is skipped in bounded memory."""

import random

import pytest

from tailrace.doors.dmqp.codec import Codec, Header, HeaderOrder, Method, Status
from tailrace.doors.dmqp.request_reader import Request, RequestReader
from tailrace.model.limits import DMQP_PAYLOAD_MAX_BYTES

MANY = 1_000_000


def sent(method: int, topic_id: int = 0, payload: bytes = b"", *, length: int | None = None, codec: Codec) -> bytes:
    told = len(payload) if length is None else length
    return codec.encoded(Header(123, told, method, topic_id, 77)) + payload


def fed(reader: RequestReader, data: bytes, step: int) -> list[Request]:
    found: list[Request] = []
    for at in range(0, len(data), step):
        requests, used = reader.feed(memoryview(data)[at : at + step], MANY)
        assert used == len(data[at : at + step])
        found += requests
    return found


def a_conversation(codec: Codec) -> tuple[bytes, list[Request]]:
    """One of everything, and what it is."""
    long = bytes(DMQP_PAYLOAD_MAX_BYTES + 1)
    parts = [
        (sent(Method.PUSH, 1, b"one", codec=codec), Request(Method.PUSH, 1, b"one", None)),
        (sent(Method.PUSH, 2, b"", codec=codec), Request(Method.PUSH, 2, b"", None)),
        (sent(Method.POP, 3, codec=codec), Request(Method.POP, 3, b"", None)),
        (sent(Method.POP, 4, b"passed over", codec=codec), Request(Method.POP, 4, b"", None)),
        (sent(Method.RESPONSE, 5, b"no", codec=codec), Request(Method.RESPONSE, 5, b"", Status.EPROTO)),
        (sent(Method.PEEK, 6, codec=codec), Request(Method.PEEK, 6, b"", None)),
        (sent(Method.PEEK_TIMESTAMP, 255, codec=codec), Request(Method.PEEK_TIMESTAMP, 255, b"", None)),
        (sent(5, 8, b"??", codec=codec), Request(5, 8, b"", Status.ENOSYS)),
        (sent(255, 9, codec=codec), Request(255, 9, b"", Status.ENOSYS)),
        (sent(Method.PUSH, 10, long, codec=codec), Request(Method.PUSH, 10, b"", Status.EMSGSIZE)),
        (sent(Method.POP, 11, long, codec=codec), Request(Method.POP, 11, b"", Status.EMSGSIZE)),
        (sent(Method.PUSH, 12, long[1:], codec=codec), Request(Method.PUSH, 12, long[1:], None)),
        (sent(Method.POP, 13, codec=codec), Request(Method.POP, 13, b"", None)),
    ]
    return b"".join(data for data, _ in parts), [request for _, request in parts]


@pytest.mark.parametrize("order", ["documented", "program"])
@pytest.mark.parametrize("step", [1009, 65_536, 10_000_000])
def test_requests_in_pieces_of_any_size(order: HeaderOrder, step: int) -> None:
    codec = Codec(order)
    data, expected = a_conversation(codec)
    reader = RequestReader(codec)
    assert fed(reader, data, step) == expected
    assert reader.is_between_requests


def test_byte_by_byte() -> None:
    codec = Codec()
    data = b"".join(sent(Method.PUSH, n, bytes([n]) * n, codec=codec) for n in range(40))
    assert [one.payload for one in fed(RequestReader(codec), data, 1)] == [bytes([n]) * n for n in range(40)]


def test_random_pieces() -> None:
    chance = random.Random(5)
    codec = Codec()
    payloads = [chance.randbytes(chance.choice([0, 1, 15, 16, 17, 300, 70_000])) for _ in range(300)]
    data = b"".join(sent(Method.PUSH, 1, payload, codec=codec) for payload in payloads)
    reader, found, at = RequestReader(codec), [], 0
    while at < len(data):
        requests, used = reader.feed(memoryview(data)[at : at + chance.randint(1, 5000)], MANY)
        found += [one.payload for one in requests]
        at += used
    assert found == payloads


def test_no_more_requests_than_asked_for_and_the_rest_is_fed_again() -> None:
    codec = Codec()
    data = memoryview(b"".join(sent(Method.POP, n, codec=codec) for n in range(5)))
    reader = RequestReader(codec)
    first, used = reader.feed(data, 3)
    assert ([one.topic_id for one in first], used) == ([0, 1, 2], 48)
    assert reader.feed(data[used:], 0) == ([], 0)
    rest, used = reader.feed(data[used:], 100)
    assert ([one.topic_id for one in rest], used) == ([3, 4], 32)


def test_a_payload_that_is_too_long_is_refused_before_it_arrives_and_never_kept() -> None:
    codec = Codec()
    reader = RequestReader(codec)
    header = sent(Method.PUSH, 1, length=2**32 - 1, codec=codec)
    requests, _ = reader.feed(memoryview(header), MANY)
    assert [one.refusal for one in requests] == [Status.EMSGSIZE]
    for _ in range(100):
        assert reader.feed(memoryview(bytes(65_536)), MANY) == ([], 65_536)
        assert reader.held_bytes == 0
    assert not reader.is_between_requests


def test_a_length_that_lies_costs_what_was_sent_and_not_what_was_told() -> None:
    codec = Codec()
    reader = RequestReader(codec)
    reader.feed(memoryview(sent(Method.PUSH, 1, b"abc", length=DMQP_PAYLOAD_MAX_BYTES, codec=codec)), MANY)
    assert reader.held_bytes == 3
    assert not reader.is_between_requests


def test_a_payload_that_arrives_can_be_dropped_and_the_next_request_is_found() -> None:
    codec = Codec()
    reader = RequestReader(codec)
    whole = sent(Method.PUSH, 7, bytes(1000), codec=codec)
    reader.feed(memoryview(whole)[:500], MANY)
    assert reader.drop_payload() == Request(Method.PUSH, 7, b"", Status.EAGAIN)
    assert reader.held_bytes == 0
    assert reader.drop_payload() is None
    after = whole[500:] + sent(Method.POP, 8, codec=codec)
    assert reader.feed(memoryview(after), MANY)[0] == [Request(Method.POP, 8, b"", None)]


def test_a_truncated_header_is_no_request() -> None:
    codec = Codec()
    for size in range(1, 16):
        reader = RequestReader(codec)
        assert reader.feed(memoryview(sent(Method.POP, codec=codec))[:size], MANY) == ([], size)
        assert not reader.is_between_requests
