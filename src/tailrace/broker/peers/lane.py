"""One lane to one broker. When its connection is lost the lane reconnects, with exponential backoff and jitter.

Frames sent while it is down are dropped: Raft repeats what matters, and fetch sessions start over when a lane comes up.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from tailrace.broker.peers.calls import Calls
from tailrace.broker.peers.complaints import Complaints
from tailrace.broker.peers.events import PeerEvents
from tailrace.broker.peers.lane_kind import LaneKind
from tailrace.broker.peers.levels import why_incompatible
from tailrace.broker.peers.outgoing import SILENCE_MAX_S, OutgoingConnection, open_connection
from tailrace.broker.peers.unreachable import Refused, Unreachable
from tailrace.model.ids import BrokerId
from tailrace.model.limits import PEER_CONTROL_UNSENT_MAX_BYTES, PEER_FETCH_UNSENT_MAX_BYTES
from tailrace.ports import Ports
from tailrace.ports.disk import Buffer
from tailrace.wire.errors import Error
from tailrace.wire.messages.peers.hello import Neighbour, PeerHello

logger: Final = logging.getLogger(__name__)

BACKOFF_MIN_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
STAYS_UP_S: Final = 10.0  # after this long, the loss of a connection is logged again
REASONS_LOGGED_MAX: Final = 20


class Lane:
    def __init__(
        self,
        ports: Ports,
        hello: PeerHello,
        events: PeerEvents,
        complaints: Complaints,
        on_neighbours: Callable[[Sequence[Neighbour]], None],
        level: Callable[[], int],
    ) -> None:
        self.broker = BrokerId(hello.to)
        self.kind = LaneKind(hello.lane)
        self._ports = ports
        self._hello = hello
        self._events = events
        self._complaints = complaints
        self._on_neighbours = on_neighbours  # called with the addresses in each hello's answer
        self._level = level  # the metadata.version in force, as known here
        self.incompatible = ""  # why the peer refuses this broker: it does not support the metadata.version in force
        self._address: tuple[str, int] | None = None
        self._connection: OutgoingConnection | None = None  # set while it is up
        self._closing: OutgoingConnection | None = None
        self._up_since = 0.0
        self._calls = Calls()
        self._retry_now = asyncio.Event()  # ends the backoff
        self._closed = False
        self._logged: dict[str, None] = {}  # reasons logged since the lane last stayed up
        self._task = asyncio.get_running_loop().create_task(self._keep_up())
        self._task.add_done_callback(_ended)

    @property
    def up(self) -> bool:
        return self._connection is not None

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send whole frames; the caller must not change them afterwards. Dropped when the lane is not up."""
        if self._connection is not None:
            self._connection.send(buffers)

    async def call(self, request: object, version: int, timeout_s: float) -> Any:
        if self._connection is None:
            raise Unreachable(f"broker {self.broker} is not connected")
        number, frame, answer = self._calls.ask(request, version, self._ports.clock.monotonic())
        self._connection.send([frame])
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            self._drop_if_silent()
            raise Unreachable(f"broker {self.broker} did not answer within {timeout_s} s") from None
        finally:
            self._calls.give_up(number)

    def _drop_if_silent(self) -> None:
        """After a call timed out: drop the connection if no call at all was answered for `SILENCE_MAX_S`."""
        silent_s = self._calls.silent_for(self._ports.clock.monotonic())
        if silent_s >= SILENCE_MAX_S and self._connection is not None:
            self._connection.drop(f"no call was answered for {silent_s:.1f} s")

    # Staying connected

    def set_address(self, host: str, port: int) -> None:
        """Connect to this address from now on; reconnects if it has changed."""
        if self._address != (host, port):
            self._address = (host, port)
            if self._connection is not None:
                self._connection.drop("the peer's address has changed")
            self._retry_now.set()

    def level_raised(self, level: int) -> None:
        """Drop the connection if the peer does not support `level`, which has just come into force."""
        if self._connection is not None and (why := why_incompatible(self._connection.answer, level)):
            self._connection.drop(why)

    def retry_now(self) -> None:
        """End the backoff: the broker has connected to us, so it is up."""
        self._retry_now.set()

    async def _keep_up(self) -> None:
        backoff_s = BACKOFF_MIN_S
        while not self._closed:
            self._retry_now.clear()
            tried_at = self._ports.clock.monotonic()
            if self._address is not None:
                await self._connect(*self._address)
            lasted_s = self._ports.clock.monotonic() - tried_at
            backoff_s = BACKOFF_MIN_S if lasted_s > 2 * BACKOFF_MAX_S else min(2 * backoff_s, BACKOFF_MAX_S)
            await self._back_off(
                self._ports.random.uniform(backoff_s / 2, backoff_s) if self._address is not None else None
            )

    async def _connect(self, host: str, port: int) -> None:
        """Connect, and return when the connection has ended."""
        try:
            connection = await open_connection(self._ports.net, host, port, self._new_connection)
        except Refused as error:
            if error.by_peer and error.error is Error.UNSUPPORTED_VERSION:
                self.incompatible = error.why
            self._complaints.log_closing(host, port, f"the {self.kind} lane to broker {self.broker}: {error}")
        except Unreachable as error:
            self._log_once(f"the {self.kind} lane to broker {self.broker} at {host}:{port} is down: {error}")
        else:
            if self._address != (host, port):
                connection.drop("the peer's address has changed")
            await connection.wait_ended()

    async def _back_off(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._retry_now.wait()

    def _new_connection(self) -> OutgoingConnection:
        control = self.kind is LaneKind.CONTROL
        return OutgoingConnection(
            self._hello,
            self,
            PEER_CONTROL_UNSENT_MAX_BYTES if control else PEER_FETCH_UNSENT_MAX_BYTES,
            self._level,
        )

    def _log_once(self, why: str) -> None:
        """Log a reason once until the lane has stayed up for `STAYS_UP_S`: it reconnects every second."""
        if why not in self._logged and len(self._logged) < REASONS_LOGGED_MAX:
            self._logged[why] = None
            logger.info("%s", why)

    # Callbacks of the connection

    def opened(self, connection: OutgoingConnection) -> None:
        self._connection = connection
        self._up_since = self._ports.clock.monotonic()
        self._events.lane_up(self)
        self._on_neighbours(connection.answer.neighbours)

    def answered(self, frame: memoryview) -> None:
        if self.kind is LaneKind.CONTROL:
            self._calls.answered(frame, self._ports.clock.monotonic())
        else:
            self._events.fetched(self, frame)

    def lost(self, why: str) -> None:
        self._connection = None
        self._calls.fail(why)
        if self._ports.clock.monotonic() - self._up_since > STAYS_UP_S:
            self._logged.clear()
        if not self._closed:
            self._log_once(f"the {self.kind} lane to broker {self.broker} was lost: {why}")
            self._events.lane_down(self)

    # Closing

    def close(self) -> None:
        """Send what was written, then close, without a `lane_down`."""
        self._closed = True
        self._task.cancel()
        self._calls.fail("the lane was closed")
        self._closing, self._connection = self._connection, None
        if self._closing is not None:
            self._closing.close()

    async def wait_closed(self) -> None:
        if self._closing is not None:
            await self._closing.wait_ended()


def _ended(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        context = {"message": "bug in a peer lane, it stays down until the broker restarts", "exception": error}
        task.get_loop().call_exception_handler(context)
