"""The near end of a connection to a peer: our hello, its answer, and then frames for whoever opened it."""

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

CONNECT_MAX_S: Final = 3.0  # to be connected and greeted
SILENCE_MAX_S: Final = 5.0  # for what was sent to arrive
LINGER_MAX_S: Final = 1.0  # for the other side to take in what was sent before we closed
HELLO_NUMBER: Final = 0
HELLO_VERSION: Final = 0  # the only one there will be


class Opener(Protocol):
    """Who opened the connection. All inside the callback that brought it."""

    def opened(self, connection: "OutgoingConnection") -> None: ...

    def answered(self, frame: memoryview) -> None:
        """A frame after the hello's answer; a WireError ends the connection."""
        ...

    def lost(self, why: str) -> None:
        """It is over; it had been up."""
        ...


class OutgoingConnection(FramedProtocol):
    def __init__(
        self, hello: PeerHello, opener: Opener, unsent_max_bytes: int, level: Callable[[], int | None]
    ) -> None:
        """`level` tells which one of metadata.version is in force; None: that is not known here."""
        super().__init__(PEER_HELLO_MAX_BYTES)
        self._hello = hello
        self._level = level
        self._opener = opener
        self._unsent_max_bytes = unsent_max_bytes
        self._why = "the other side closed it"
        self._up = False
        self.answer = PeerHelloAnswer()  # to our hello, once it is up
        self._greeted: asyncio.Future[Unreachable | None] = asyncio.get_running_loop().create_future()
        self._ended = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None

    async def greet(self) -> None:
        """Wait until both ends know each other; Unreachable, or Refused, if they never will."""
        if (failed := await self._greeted) is not None:
            raise failed

    async def wait_ended(self) -> None:
        await self._ended.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        give_up_after(self.transport, SILENCE_MAX_S)
        self.transport.write(request_frame(self._hello, HELLO_VERSION, HELLO_NUMBER))

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
        if number != HELLO_NUMBER:
            raise WireError(f"answer {number} came before the hello's")
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
            self.drop(f"it does not read: {unsent} bytes wait for it")

    def drop(self, why: str) -> None:
        """End it now; what was not sent yet is lost."""
        self.paused = True
        if self.transport is not None and not self.transport.is_closing():
            self._why = why
            self.transport.abort()

    def close(self) -> None:
        """End it once everything is sent."""
        self.paused = True
        if self.transport is not None:
            self.transport.close()
            self._linger = asyncio.get_running_loop().call_later(LINGER_MAX_S, self.transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if error is not None:
            self._why = str(error)
        if not self._greeted.done():
            self._greeted.set_result(Unreachable(f"no answer to the hello: {self._why}"))
        if self._linger is not None:
            self._linger.cancel()
        self._ended.set()
        if self._up:
            self._up = False
            self._opener.lost(self._why)


async def open_connection(net: Net, host: str, port: int, make: Callable[[], OutgoingConnection]) -> OutgoingConnection:
    """Connect and be greeted; Unreachable, or Refused, when that fails or takes too long."""
    made: list[OutgoingConnection] = []

    def factory() -> OutgoingConnection:
        made.append(make())
        return made[-1]

    try:
        async with asyncio.timeout(CONNECT_MAX_S):
            connection = await net.connect(factory, host, port)
            await connection.greet()
    except BaseException as error:
        for one in made:
            one.drop("it is not wanted any more")
        if isinstance(error, TimeoutError):
            raise Unreachable("no answer in time") from None
        if isinstance(error, OSError | ValueError | OverflowError) and not isinstance(error, Unreachable):
            raise Unreachable(str(error)) from error  # a host's name can be no name, a port's number no port
        raise
    return connection
