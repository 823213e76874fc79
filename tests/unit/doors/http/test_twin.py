"""The connection beside h11: every request that is served here is one that h11 sees, and the same one.

The parser takes two spaces after the method for one, which RFC 9112 allows and h11 does not do. The connection may
refuse more: folded headers, bare line feeds, a Content-Length that is there twice.
"""

import asyncio
from typing import Any, NamedTuple

import h11
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.doors.http.messages import Request, Response
from tests.unit.doors.http.serving import Serving, route, serve


class Seen(NamedTuple):
    method: str
    path: str
    body: bytes


LINES = st.sampled_from(
    [
        b"GET /a HTTP/1.1",
        b"POST /a HTTP/1.1",
        b"POST /a HTTP/1.0",
        b"GET /a HTTP/1.1 ",
        b"GET /a",
        b"",
    ]
)
HEADERS = st.lists(
    st.sampled_from(
        [
            b"Host: s",
            b"Host: s",
            b"Host: s",
            b"Content-Length: 3",
            b"Content-Length: 0",
            b"Content-Length: 3,3",
            b"Content-Length:3 ",
            b"Content-Length: 0003",
            b"Transfer-Encoding: chunked",
            b"Transfer-Encoding: Chunked",
            b"Transfer-Encoding : chunked",
            b"Transfer-Encoding: chunked, chunked",
            b"X: y",
            b" folded: y",
            b"X y: z",
            b": empty",
            b"X:\ty\t",
            b"Connection: close",
            b"X: \x80",
        ]
    ),
    max_size=4,
)
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r"])
BODIES = st.sampled_from(
    [
        b"",
        b"abc",
        b"3\r\nabc\r\n0\r\n\r\n",
        b"3;x\r\nabc\r\n0\r\nT: u\r\n\r\n",
        b"03\r\nabc\r\n00\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"3\nabc\n0\n\n",
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"-1\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
    ]
)


@st.composite
def streams(draw: Any) -> bytes:
    data = b""
    for _ in range(draw(st.integers(1, 2))):
        end = draw(ENDS)
        data += end.join([draw(LINES), b"Host: s", *draw(HEADERS), b"", b""]) + draw(BODIES)
    return data


def by_h11(data: bytes) -> list[Seen]:
    """The complete requests, up to what it refuses."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    found: list[Seen] = []
    head: Any = None
    body = b""
    try:
        while True:
            event: Any = connection.next_event()
            if event is h11.NEED_DATA or event is h11.PAUSED:
                if connection.our_state is not h11.SEND_RESPONSE or head is not None:
                    return found
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.states[h11.CLIENT] is not h11.DONE:
                    return found
                connection.start_next_cycle()
            elif isinstance(event, h11.Request):
                head, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found.append(Seen(head.method.decode(), head.target.decode(), body))
                head = None
            else:
                return found
    except h11.ProtocolError:  # it refuses what comes, or the connection has to end
        return found


def by_ours(data: bytes) -> tuple[list[Seen], bool]:
    found: list[Seen] = []
    refused: list[bool] = []

    async def handler(request: Request) -> Response:
        found.append(Seen(request.method, request.path, request.body))
        return Response()

    async def scenario(serving: Serving) -> None:
        client = await serving.connect()
        client.send(data)
        await asyncio.sleep(2.0)
        refused.append(b"HTTP/1.1 4" in client.received or b"HTTP/1.1 5" in client.received)

    serve(scenario, [route("GET", "/a", handler), route("POST", "/a", handler)])
    return found, refused[0]


@settings(max_examples=150, deadline=None)
@given(streams())
def test_requests_are_those_that_h11_sees(data: bytes) -> None:
    theirs = by_h11(data)
    ours, we_refuse = by_ours(data)
    assert ours == theirs[: len(ours)], "a request is another one here, or h11 refuses it"
    assert len(ours) == len(theirs) or we_refuse
