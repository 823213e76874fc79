"""One lane to one broker, kept up: whenever it is lost it is opened again, after a rest that grows and varies.

What is sent while it is down is dropped: Raft repeats what matters, and fetching begins anew when a lane comes up.
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

REST_MIN_S: Final = 0.05
REST_MAX_S: Final = 1.0
STAYS_UP_S: Final = 10.0  # a lane that lasted so long is worth a new line in the log when it is lost
REASONS_TOLD_MAX: Final = 20


class Lane:
    def __init__(
        self,
        ports: Ports,
        hello: PeerHello,
        told: PeerEvents,
        complaints: Complaints,
        told_of: Callable[[Sequence[Neighbour]], None],
        level: Callable[[], int],
    ) -> None:
        self.broker = BrokerId(hello.to)
        self.kind = LaneKind(hello.lane)
        self._ports = ports
        self._hello = hello
        self._told = told
        self._complaints = complaints
        self._told_of = told_of
        self._level = level  # of metadata.version in force, as far as known here
        self.incompatible = ""  # why the other end does not talk to this broker: it does not support the level in force
        self._address: tuple[str, int] | None = None
        self._connection: OutgoingConnection | None = None  # set while it is up
        self._closing: OutgoingConnection | None = None
        self._up_since = 0.0
        self._calls = Calls()
        self._awake = asyncio.Event()
        self._kept = True
        self._said: dict[str, None] = {}  # about why it is down, since it last stayed up
        self._task = asyncio.get_running_loop().create_task(self._keep_up())
        self._task.add_done_callback(_ended)

    @property
    def up(self) -> bool:
        return self._connection is not None

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Whole frames, which nobody changes afterwards. Dropped when the lane is not up."""
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
            self._suspect()
            raise Unreachable(f"broker {self.broker} did not answer within {timeout_s} s") from None
        finally:
            self._calls.give_up(number)

    def _suspect(self) -> None:
        """A call got no answer in time: if no other did, there may be nobody at the other end any more."""
        silent_s = self._calls.silent_for(self._ports.clock.monotonic())
        if silent_s >= SILENCE_MAX_S and self._connection is not None:
            self._connection.drop(f"it was asked, and silent for {silent_s:.1f} s")

    # Staying connected

    def lead_to(self, host: str, port: int) -> None:
        """Where the broker is found. When it has moved, the lane follows."""
        if self._address != (host, port):
            self._address = (host, port)
            if self._connection is not None:
                self._connection.drop("its peer has moved")
            self._awake.set()

    def level_raised(self, level: int) -> None:
        """Drop a connection to a broker that does not support the level which is in force now."""
        if self._connection is not None and (why := why_incompatible(self._connection.answer, level)):
            self._connection.drop(why)

    def try_now(self) -> None:
        """The broker seems to be there: do not rest any longer."""
        self._awake.set()

    async def _keep_up(self) -> None:
        rest_s = REST_MIN_S
        while self._kept:
            self._awake.clear()
            tried_at = self._ports.clock.monotonic()
            if self._address is not None:
                await self._connect(*self._address)
            lasted_s = self._ports.clock.monotonic() - tried_at
            rest_s = REST_MIN_S if lasted_s > 2 * REST_MAX_S else min(2 * rest_s, REST_MAX_S)
            await self._rest(self._ports.random.uniform(rest_s / 2, rest_s) if self._address is not None else None)

    async def _connect(self, host: str, port: int) -> None:
        """Be connected for as long as it lasts."""
        try:
            connection = await open_connection(self._ports.net, host, port, self._make)
        except Refused as error:
            if error.by_peer and error.error is Error.UNSUPPORTED_VERSION:
                self.incompatible = error.why
            self._complaints.say(host, port, f"the {self.kind} lane to broker {self.broker}: {error}")
        except Unreachable as error:
            self._tell(f"the {self.kind} lane to broker {self.broker} at {host}:{port} is down: {error}")
        else:
            if self._address != (host, port):
                connection.drop("its peer has moved")
            await connection.wait_ended()

    async def _rest(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._awake.wait()

    def _make(self) -> OutgoingConnection:
        control = self.kind is LaneKind.CONTROL
        return OutgoingConnection(
            self._hello,
            self,
            PEER_CONTROL_UNSENT_MAX_BYTES if control else PEER_FETCH_UNSENT_MAX_BYTES,
            self._level,
        )

    def _tell(self, why: str) -> None:
        """Once, until it has stayed up for a while: a lane tries every second."""
        if why not in self._said and len(self._said) < REASONS_TOLD_MAX:
            self._said[why] = None
            logger.info("%s", why)

    # What the connection reports

    def opened(self, connection: OutgoingConnection) -> None:
        self._connection = connection
        self._up_since = self._ports.clock.monotonic()
        self._told.lane_up(self)
        self._told_of(connection.answer.neighbours)

    def answered(self, frame: memoryview) -> None:
        if self.kind is LaneKind.CONTROL:
            self._calls.answered(frame, self._ports.clock.monotonic())
        else:
            self._told.fetched(self, frame)

    def lost(self, why: str) -> None:
        self._connection = None
        self._calls.fail(why)
        if self._ports.clock.monotonic() - self._up_since > STAYS_UP_S:
            self._said.clear()
        if self._kept:
            self._tell(f"the {self.kind} lane to broker {self.broker} was lost: {why}")
            self._told.lane_down(self)

    # The end

    def close(self) -> None:
        """Send what was written, then end. Nobody is told."""
        self._kept = False
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
