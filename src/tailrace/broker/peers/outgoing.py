"""A connection opened to a peer: sends our hello, checks the answer, then passes frames to its `Opener`."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tailrace.broker.peers.framing import read_answer, request_frame
from tailrace.broker.peers.hello import check_answer
from tailrace.broker.peers.unreachable import Refused, Unreachable
from tailrace.model.limits import FRAME_MAX_BYTES, PEER_HELLO_MAX_BYTES
from tailrace.ports import Net
from tailrace.ports.disk import Buffer
from tailrace.ports.net import give_up_after
from tailrace.wire.framing import FramedProtocol, FrameError
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tailrace.wire.primitives import WireError

CONNECT_MAX_S: Final = 3.0  # for connecting and for the answer to the hello
SILENCE_MAX_S: Final = 5.0  # unacknowledged data, or unanswered calls, for this long: the connection is dead
LINGER_MAX_S: Final = 1.0  # for the peer to read what was sent before we closed
HELLO_CORRELATION_ID: Final = 0
HELLO_VERSION: Final = 0  # never changes: releases must understand each other's hello


class Opener(Protocol):
    """The owner of the connection. All methods are called from the transport's callback."""

    def opened(self, connection: "OutgoingConnection") -> None: ...

    def answered(self, frame: memoryview) -> None:
        """A frame after the hello's answer; a WireError ends the connection."""
        ...

    def lost(self, why: str) -> None:
        """The connection was up and has ended."""
        ...


class OutgoingConnection(FramedProtocol):
    def __init__(
        self, hello: PeerHello, opener: Opener, unsent_max_bytes: int, level: Callable[[], int | None]
    ) -> None:
        """`level` returns the metadata.version in force; None if it is not known here."""
        super().__init__(PEER_HELLO_MAX_BYTES)
        self._hello = hello
        self._level = level
        self._opener = opener
        self._unsent_max_bytes = unsent_max_bytes
        self._close_reason = "the peer closed the connection"
        self._up = False
        self.answer = PeerHelloAnswer()  # to our hello, once it is up
        self._greeted: asyncio.Future[Unreachable | None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None

    async def wait_greeted(self) -> None:
        """Wait for the answer to the hello; raises Unreachable, or Refused, if the connection does not come up."""
        if (failed := await self._greeted) is not None:
            raise failed

    async def wait_ended(self) -> None:
        await self._ended.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        give_up_after(self.transport, SILENCE_MAX_S)
        self.transport.write(request_frame(self._hello, HELLO_VERSION, HELLO_CORRELATION_ID))

    def frame_received(self, frame: memoryview) -> None:
        try:
            if self._up:
                self._opener.answered(frame)
            else:
                self._read_hello(frame)
        except (WireError, Refused) as error:
            self._fail(error)

    def _read_hello(self, frame: memoryview) -> None:
        number, answer = read_answer(frame, PeerHelloAnswer, HELLO_VERSION)
        if number != HELLO_CORRELATION_ID:
            raise WireError(f"answer {number} before the answer to the hello")
        check_answer(answer, self._hello, self._level())
        self.answer = answer
        self._frame_max_bytes = FRAME_MAX_BYTES
        self._up = True
        if not self._greeted.done():
            self._greeted.set_result(None)
        self._opener.opened(self)

    def frame_refused(self, error: FrameError) -> None:
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        if not self._greeted.done():
            self._greeted.set_result(error if isinstance(error, Refused) else Unreachable(str(error)))
        self.drop(str(error))

    def send(self, buffers: Sequence[Buffer]) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        transport.writelines(buffers)
        if (unsent := transport.get_write_buffer_size()) > self._unsent_max_bytes:
            self.drop(f"the peer does not read: {unsent} bytes are unsent")

    def release(self) -> asyncio.Transport:
        """Give the transport away, to another protocol."""
        transport, self.transport = self.transport, None
        assert transport is not None
        self._up = False
        self.paused = True
        return transport

    def drop(self, why: str) -> None:
        """Close at once; what was not sent yet is lost."""
        self.paused = True
        if self.transport is not None and not self.transport.is_closing():
            self._close_reason = why
            self.transport.abort()

    def close(self) -> None:
        """Close once everything is sent."""
        self.paused = True
        if self.transport is not None:
            self.transport.close()
            self._linger = asyncio.get_running_loop().call_later(LINGER_MAX_S, self.transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if error is not None:
            self._close_reason = str(error)
        if not self._greeted.done():
            self._greeted.set_result(Unreachable(f"no answer to the hello: {self._close_reason}"))
        if self._linger is not None:
            self._linger.cancel()
        self._ended.set()
        if self._up:
            self._up = False
            self._opener.lost(self._close_reason)


async def open_connection(net: Net, host: str, port: int, make: Callable[[], OutgoingConnection]) -> OutgoingConnection:
    """Connect and exchange hellos; Unreachable, or Refused, when that fails or takes too long."""
    made: list[OutgoingConnection] = []

    def factory() -> OutgoingConnection:
        made.append(make())
        return made[-1]

    try:
        async with asyncio.timeout(CONNECT_MAX_S):
            connection = await net.connect(factory, host, port)
            await connection.wait_greeted()
    except BaseException as error:
        for one in made:
            one.drop("connecting was given up")
        if isinstance(error, TimeoutError):
            raise Unreachable("no answer to the hello in time") from None
        if isinstance(error, OSError | ValueError | OverflowError) and not isinstance(error, Unreachable):
            raise Unreachable(str(error)) from error  # an invalid host name or port number
        raise
    return connection
