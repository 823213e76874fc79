"""HTTP/1.1 on one connection: requests in, answers out in order, and when it ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tailrace.doors.http.messages import Request, Response, Stream
from tailrace.model.limits import HTTP_PIPELINED_MAX
from tests.unit.doors.http.serving import GET, Serving, route, serve


def test_a_request_is_answered() -> None:
    async def scenario(serving: Serving) -> None:
        answer = await serving.ask(b"POST /echo?a=1&b=%C3%A9 HTTP/1.1\r\nHost: s\r\nContent-Length: 5\r\n\r\nhello")
        assert answer.status == 200
        assert json.loads(answer.body) == {
            "method": "POST", "path": "/echo", "parameters": {}, "query": {"a": "1", "b": "é"}, "body": "hello"
        }  # fmt: skip
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["date"].endswith("GMT")

    serve(scenario)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_bytes_may_come_in_any_pieces(size: int) -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        data = (
            b"POST /echo HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n" + GET
        )
        for at in range(0, len(data), size):
            client.send(data[at : at + size])
            await asyncio.sleep(0.001)
        assert json.loads((await client.answer()).body)["body"] == "abcde"
        assert json.loads((await client.answer()).body)["method"] == "GET"

    serve(scenario)


def test_pipelined_requests_are_answered_in_order_and_one_after_the_other() -> None:
    under_way: list[int] = []

    async def slow(request: Request) -> Response:
        assert not under_way
        under_way.append(1)
        await asyncio.sleep(1.0 / (1 + int(request.query["n"])))
        under_way.pop()
        return Response(body=request.query["n"].encode())

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        count = 3 * HTTP_PIPELINED_MAX
        client.send(b"".join(b"GET /slow?n=%d HTTP/1.1\r\nHost: s\r\n\r\n" % n for n in range(count)))
        assert [(await client.answer()).body for _ in range(count)] == [b"%d" % n for n in range(count)]

    serve(scenario, [route("GET", "/slow", slow)])


def test_reading_pauses_while_too_many_requests_wait() -> None:
    release = asyncio.Event()

    async def held(request: Request) -> Response:
        await release.wait()
        return Response()

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        request = b"GET /held?" + b"x=1" + b" HTTP/1.1\r\nHost: s\r\nX: " + b"y" * 8000 + b"\r\n\r\n"
        for _ in range(10 * HTTP_PIPELINED_MAX):
            client.send(request)
        await asyncio.sleep(5.0)
        (connection,) = serving.server._connections
        assert len(connection._waiting) <= HTTP_PIPELINED_MAX + 3
        release.set()
        for _ in range(10 * HTTP_PIPELINED_MAX):
            assert (await client.answer()).status == 200

    serve(scenario, [route("GET", "/held", held)])


def test_head_is_answered_without_a_body() -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        answer = await client.ask(b"HEAD /echo HTTP/1.1\r\nHost: s\r\n\r\n", "HEAD")
        assert (answer.status, answer.body) == (200, b"")
        assert int(answer.headers["content-length"]) > 0
        assert (await client.ask(GET)).status == 200

    serve(scenario)


@pytest.mark.parametrize(
    ("head", "closes"),
    [
        (b"GET /echo HTTP/1.1\r\nHost: s\r\nConnection: close", True),
        (b"GET /echo HTTP/1.0", True),
        (b"GET /echo HTTP/1.0\r\nConnection: keep-alive", False),
    ],
)
def test_the_connection_ends_when_the_client_asks_for_it(head: bytes, closes: bool) -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        answer = await client.ask(head + b"\r\n\r\n")
        assert answer.status == 200
        assert answer.headers.get("connection") == ("close" if closes else "keep-alive")
        if closes:
            await client.until_closed()
        else:
            assert (await client.ask(GET)).status == 200

    serve(scenario)


def test_a_client_that_expects_100_is_told_to_go_on() -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.send(b"POST /echo HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        await client.until(lambda: bytes(client.received) == b"HTTP/1.1 100 Continue\r\n\r\n")
        client.received.clear()
        assert json.loads((await client.ask(b"hi")).body)["body"] == "hi"
        refused = await client.ask(b"POST /no HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert refused.status == 404
        await client.until_closed()

    serve(scenario)


def test_what_was_asked_before_the_client_closed_its_side_is_answered() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(1.0)
        return Response()

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.send(2 * b"GET /slow HTTP/1.1\r\nHost: s\r\n\r\n")
        client.transport.write_eof()
        assert "connection" not in (await client.answer()).headers
        assert (await client.answer()).headers["connection"] == "close"
        await client.until_closed()

    serve(scenario, [route("GET", "/slow", slow)])


def test_a_stream_is_sent_piece_by_piece_and_waits_for_its_reader() -> None:
    made: list[int] = []

    async def pieces() -> AsyncIterator[bytes]:
        for number in range(100):
            made.append(number)
            yield b"%d" % (number % 10) * 50_000

    async def streaming(request: Request) -> Stream:
        return Stream(chunks=pieces(), content_type="text/plain")

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.transport.pause_reading()
        client.send(b"GET /stream HTTP/1.1\r\nHost: s\r\n\r\n" + GET)
        await asyncio.sleep(5.0)
        assert 0 < len(made) < 90
        client.transport.resume_reading()
        assert len((await client.answer()).body) == 5_000_000
        assert (await client.answer()).status == 200

    serve(scenario, [route("GET", "/stream", streaming), route("GET", "/echo")])


def test_a_stream_ends_when_its_client_is_gone() -> None:
    closed = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await asyncio.sleep(1.0)
        finally:
            closed.set()

    async def streaming(request: Request) -> Stream:
        return Stream(chunks=endless())

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.send(b"GET /stream HTTP/1.1\r\nHost: s\r\n\r\n")
        await client.until(lambda: b"x" in client.received)
        client.transport.abort()
        await closed.wait()
        await serving.server._empty.wait()

    serve(scenario, [route("GET", "/stream", streaming)])


def test_a_stop_answers_what_was_asked_and_ends_streams_with_a_farewell() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(2.0)
        return Response(body=b"done")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"tick "
            await asyncio.sleep(0.5)

    async def streaming(request: Request) -> Stream:
        return Stream(chunks=endless(), farewell=b"bye")

    async def scenario(serving: Serving) -> None:
        idle, waiting, reading = [await serving.connect() for _ in range(3)]
        waiting.send(b"GET /slow HTTP/1.1\r\nHost: s\r\n\r\n")
        reading.send(b"GET /stream HTTP/1.1\r\nHost: s\r\n\r\n")
        await reading.until(lambda: b"tick" in reading.received)
        await serving._world.machine("s").run(serving.server.stop(10.0))
        answer = await waiting.answer()
        assert (answer.body, answer.headers["connection"]) == (b"done", "close")
        assert (await reading.answer()).body.endswith(b"tick bye")
        await idle.until_closed()
        assert len(serving.server) == 0
        with pytest.raises(OSError, match="refused"):
            await serving.connect()

    serve(scenario, [route("GET", "/slow", slow), route("GET", "/stream", streaming)])


def test_requests_wait_until_the_server_is_open() -> None:
    async def scenario(serving: Serving) -> None:
        serving.server.is_open = False
        client = await serving.connect()
        client.send(GET)
        await asyncio.sleep(1.0)
        assert not client.received
        serving._world.machine("s").spawn(opening(serving))
        assert (await client.answer()).status == 200

    async def opening(serving: Serving) -> None:
        serving.server.open()

    serve(scenario)


def test_a_bug_in_a_handler_costs_its_connection_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Request) -> Any:
        raise ZeroDivisionError("a secret")

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        answer = await client.ask(b"GET /broken HTTP/1.1\r\nHost: s\r\n\r\n")
        assert answer.status == 500
        assert b"secret" not in answer.body
        await client.until_closed()

    serve(scenario, [route("GET", "/broken", broken)])
    assert "a secret" in caplog.text
