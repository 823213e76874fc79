"""What hostile bytes get: an error and an end, with little memory and little time, and nobody else notices."""

import asyncio
import json

import pytest

from tailrace.doors.http.messages import Request, Response
from tailrace.model.limits import HTTP_HEAD_MAX_BYTES, HTTP_HEAD_MAX_S, HTTP_HEADERS_MAX, HTTP_IDLE_MAX_S
from tests.unit.doors.http.serving import GET, Serving, loopback, route, serve

POST = b"POST /echo HTTP/1.1\r\nHost: s\r\n"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: s\r\nX: " + b"a" * 100_000, 431),
        (
            b"GET / HTTP/1.1\r\nHost: s\r\n" + b"".join(b"X%d: 1\r\n" % n for n in range(HTTP_HEADERS_MAX)) + b"\r\n",
            431,
        ),
        (b"GET / HTTP/1.1\r\n" + b"a" * 100_000, 431),
        (POST + b"Content-Length: 3000000\r\n\r\n", 413),
        (POST + b"Content-Length: 99999999999999999999999\r\n\r\n", 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"20000\r\n%b\r\n" % (b"a" * 0x20000) * 20, 413),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 200_000, 400),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 200_000, 400),
        (POST + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", 415),
        (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (POST + b"Expect: tea\r\nContent-Length: 1\r\n\r\na", 417),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET echo HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"BREW /pot HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\nHost: s\r\nX: a\x00b\r\n\r\n", 400),
    ],
)
def test_what_cannot_be_read_is_answered_and_ends_the_connection(data: bytes, status: int) -> None:
    async def scenario(serving: Serving) -> None:
        other = await serving.connect()
        client = await serving.connect()
        answer = await client.ask(data)
        assert (answer.status, answer.headers["connection"]) == (status, "close")
        assert json.loads(answer.body)["status"] == "failure"
        await client.until_closed()
        assert (await other.ask(GET)).status == 200
        assert serving.server.held_bytes == 0

    serve(scenario)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3",
        b"Content-Length: 3\r\nContent-Length: 4",
        b"Content-Length : 3",
        b"Content-Length: +3",
        b"Content-Length: 3, 3",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding:\x0bchunked",
        b"X: a\r\n folded",
        b"Host: t",
    ],
)
def test_requests_of_two_meanings_are_refused(head: bytes) -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        answer = await client.ask(POST + head + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n" + GET)
        assert answer.status in (400, 501)
        await client.until_closed()
        assert client.received.count(b"\r\nDate: ") == 1

    serve(scenario)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /nothing HTTP/1.1\r\nHost: s\r\n\r\n", 404),
        (b"DELETE /echo HTTP/1.1\r\nHost: s\r\n\r\n", 405),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET /echo?a=1&a=2 HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"GET /echo?a=%ff HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"GET /echo%ff HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"GET /echo?" + b"&".join(b"%d=1" % n for n in range(200)) + b" HTTP/1.1\r\nHost: s\r\n\r\n", 400),
        (b"POST /nothing HTTP/1.1\r\nHost: s\r\nContent-Length: 5\r\n\r\nhello", 404),
        (b"GET /echo HTTP/1.1\r\nHost: s\r\nOrigin: http://evil.example\r\n\r\n", 403),
        (b"GET /echo HTTP/1.1\r\nHost: s\r\nOrigin: null\r\n\r\n", 403),
        (b"GET /echo HTTP/1.1\r\nHost: s\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403),
    ],
)
def test_a_request_that_is_wrong_costs_itself_alone(data: bytes, status: int) -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        answer = await client.ask(data)
        assert answer.status == status
        assert (await client.ask(GET)).status == 200

    serve(scenario)


def test_what_is_allowed_is_said() -> None:
    async def scenario(serving: Serving) -> None:
        answer = await serving.ask(b"DELETE /echo HTTP/1.1\r\nHost: s\r\n\r\n")
        assert answer.headers["allow"] == "GET, POST, HEAD, OPTIONS"

    serve(scenario)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (b"localhost:8001", 200),
        (b"127.0.0.1", 200),
        (b"[::1]:1", 200),
        (b"evil.example", 421),
        (b"127.0.0.1.evil.example", 421),
    ],
)
def test_on_loopback_foreign_host_names_are_refused(host: bytes, status: int) -> None:
    async def scenario(serving: Serving) -> None:
        for target in (b"/echo", b"http://" + host + b"/echo"):
            name = host if target == b"/echo" else b"localhost"
            answer = await serving.ask(b"GET " + target + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
            assert answer.status == status

    serve(scenario, origins=loopback())


def test_an_origin_of_our_own_is_allowed() -> None:
    async def scenario(serving: Serving) -> None:
        head = b"GET /echo HTTP/1.1\r\nHost: localhost:8001\r\nOrigin: http://localhost:8001\r\n"
        own = head + b"Sec-Fetch-Site: same-origin\r\n\r\n"
        assert (await serving.ask(own)).status == 200

    serve(scenario, origins=loopback())


def test_a_head_that_comes_drop_by_drop_ends_in_time() -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        loop = asyncio.get_running_loop()
        began = loop.time()
        client.send(b"GET /echo HTTP/1.1\r\nHost: s\r\n")
        while not client.closed and loop.time() - began < 100:
            if client.transport is not None and not client.transport.is_closing():
                client.send(b"X: y\r\n")
            await asyncio.sleep(1.0)
        assert client.closed
        assert loop.time() - began < HTTP_HEAD_MAX_S + 5
        assert b"HTTP/1.1 408 " in client.received

    serve(scenario)


@pytest.mark.parametrize("first", [b"", GET])
def test_a_connection_that_sends_nothing_is_closed(first: bytes) -> None:
    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        if first:
            await client.ask(first)
        began = asyncio.get_running_loop().time()
        await client.until_closed()
        took = asyncio.get_running_loop().time() - began
        bound = HTTP_IDLE_MAX_S if first else HTTP_HEAD_MAX_S
        assert bound - 1 < took < bound + 5

    serve(scenario)


def test_a_client_that_reads_nothing_is_cut_off() -> None:
    async def large(request: Request) -> Response:
        return Response(body=b"x" * 3_000_000)

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.transport.pause_reading()
        client.send(b"GET /large HTTP/1.1\r\nHost: s\r\n\r\n" * 20)
        async with asyncio.timeout(200):
            await serving.server._empty.wait()
        assert serving.server.held_bytes == 0

    serve(scenario, [route("GET", "/large", large)])


def test_a_client_that_reads_slowly_gets_all_of_the_last_answer() -> None:
    async def large(request: Request) -> Response:
        return Response(body=b"x" * 3_000_000)

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.send(b"GET /large HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
        while not client.closed:  # reads some every 40 s
            client.transport.resume_reading()
            await asyncio.sleep(0.001)
            client.transport.pause_reading()
            await asyncio.sleep(40.0)
        assert len((await client.answer()).body) == 3_000_000
        assert not len(serving.server)

    serve(scenario, [route("GET", "/large", large)])


@pytest.mark.parametrize("head", [b"Connection: close\r\n", b""])
def test_a_client_that_does_not_read_the_last_answer_is_cut_off(head: bytes) -> None:
    async def medium(request: Request) -> Response:
        return Response(body=b"x" * 450_000)  # more than the network takes, and less than pauses the transport

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.transport.pause_reading()
        client.send(b"GET /medium HTTP/1.1\r\nHost: s\r\n" + head + b"\r\n")
        if not head:
            client.transport.write_eof()
        async with asyncio.timeout(100):
            await serving.server._empty.wait()

    serve(scenario, [route("GET", "/medium", medium)])


def test_answers_that_are_not_read_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.doors.http.server.HTTP_UNREAD_MAX_BYTES", 10_000_000)

    async def large(request: Request) -> Response:
        return Response(body=b"x" * 3_000_000)

    async def scenario(serving: Serving) -> None:
        clients = []
        for _ in range(5):
            clients.append(await serving.connect())
            clients[-1].transport.pause_reading()
            clients[-1].send(b"GET /large HTTP/1.1\r\nHost: s\r\n\r\n")
            await asyncio.sleep(1.0)
        assert len(serving.server) == 3
        for client in clients[2:]:
            client.transport.resume_reading()
            assert len((await client.answer()).body) == 3_000_000

    serve(scenario, [route("GET", "/large", large)])


def test_heads_of_requests_that_wait_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.doors.http.server.HTTP_REQUESTS_MAX_BYTES", 100_200)
    may_answer = asyncio.Event()

    async def slow(request: Request) -> Response:
        await may_answer.wait()
        return Response()

    async def scenario(serving: Serving) -> None:
        request = b"GET /slow HTTP/1.1\r\nHost: s\r\nX: " + b"x" * 10_000 + b"\r\n\r\n"
        client = await serving.connect()
        client.send(request * 20)
        await asyncio.sleep(5.0)
        assert 90_000 < serving.server.held_bytes < 120_000
        assert (await serving.ask(GET)).status == 503
        may_answer.set()
        assert (await client.answer()).status == 200
        await client.until_closed()
        assert serving.server.held_bytes == 0
        assert (await serving.ask(request)).status == 200

    serve(scenario, [route("GET", "/slow", slow), route("GET", "/echo")])


def test_bodies_of_all_connections_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.doors.http.server.HTTP_REQUESTS_MAX_BYTES", 100_200)

    async def scenario(serving: Serving) -> None:
        first, second = await serving.connect(), await serving.connect()
        first.send(POST + b"Content-Length: 100000\r\n\r\n" + b"a" * 99_000)
        await asyncio.sleep(5.0)
        answer = await second.ask(POST + b"Content-Length: 2000\r\n\r\n" + b"a" * 2000)
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert (await first.ask(b"a" * 1000)).status == 200
        assert serving.server.held_bytes == 0

    serve(scenario)


def test_line_ends_never_reach_response_headers() -> None:
    async def scenario(serving: Serving) -> None:
        answer = await serving.ask(b"GET /echo%0d%0aSet-Cookie:x HTTP/1.1\r\nHost: s\r\n\r\n")
        assert answer.status == 404
        assert "set-cookie" not in answer.headers

    serve(scenario)


def test_a_head_may_be_as_large_as_is_allowed() -> None:
    async def scenario(serving: Serving) -> None:
        filler = b"X: " + b"y" * (HTTP_HEAD_MAX_BYTES - 100) + b"\r\n\r\n"
        assert (await serving.ask(GET[:-2] + filler)).status == 200

    serve(scenario)
