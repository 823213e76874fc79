"""Bytes on their way between two brokers: a `Flow` is one direction of a connection, a `Link` is a whole one.

A flow has one buffer and no more: it reads when that is empty, writes until it is empty again, and everything else
waits in the system's own socket buffers, until the sender's is full and the sender waits too. A flow that is *held*
does neither, so nobody is told anything: no byte, no end, no reset. That is what a network does that lost its way.

A link begins with the first frame, which says who calls; only then does it call the broker behind it. A new link that
is held has reached nobody yet: when its caller gives up, it is forgotten, as a connection that was never made.
"""

import errno
import selectors
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Final

FLOW_BUFFER_BYTES: Final = 128 * 1024
ROUNDS_PER_TURN_MAX: Final = 8  # of one flow, before the others get theirs
FIRST_FRAME_MAX_BYTES: Final = FLOW_BUFFER_BYTES - 4
LENGTH_LAYOUT: Final = struct.Struct(">i")
RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)  # SO_LINGER with no time: whoever is at the other end sees a reset

Route = tuple[int | None, int | None]  # sender and receiver; None: somebody who has no broker id yet
WhoSpeaks = Callable[[memoryview], int | None]


class Flow:
    """One direction. `route` says from whom to whom, so that it can be held by name."""

    def __init__(self, source: socket.socket, target: socket.socket, route: Route) -> None:
        self.source = source
        self.target = target
        self.route = route
        self.held = False
        self.ended = False  # the source said all it had to say, and the target knows
        self._buffer = memoryview(bytearray(FLOW_BUFFER_BYTES))
        self._begin = 0
        self._end = 0

    @property
    def wants_to_read(self) -> bool:
        return not self.held and not self.ended and self._begin == self._end

    @property
    def wants_to_write(self) -> bool:
        return not self.held and self._begin < self._end

    @property
    def waiting(self) -> memoryview:
        return self._buffer[self._begin : self._end]

    @property
    def is_full(self) -> bool:
        return self._end == len(self._buffer)

    def gather(self) -> int:
        """Read behind what waits, and pass nothing on; how much came, 0 at the source's end."""
        count = self.source.recv_into(self._buffer[self._end :])
        self._end += count
        return count

    def pump(self) -> None:
        """Pass on what is there, as far as both ends allow. OSError when one of them is gone."""
        with suppress(BlockingIOError):
            self._drain()
            for _ in range(ROUNDS_PER_TURN_MAX):
                self._begin = self._end = 0
                count = self.gather()
                if count == 0:
                    self._tell_end()
                    return
                self._drain()
                if count < FLOW_BUFFER_BYTES:
                    return  # that was all: asking once more would only tell us so

    def _drain(self) -> None:
        while self._begin < self._end:
            self._begin += self.target.send(self.waiting)

    def _tell_end(self) -> None:
        self.ended = True
        with suppress(OSError):
            self.target.shutdown(socket.SHUT_WR)


class Stage(Enum):
    """How far a link has come."""

    met = auto()  # a caller that has not said who it is
    placed = auto()  # we know who calls, and have called nobody yet
    calling = auto()
    open = auto()
    closed = auto()


class Link:
    """A caller's connection and, from the stage `calling` on, ours to the broker it means."""

    def __init__(self, caller: socket.socket, broker_id: int, address: tuple[str, int], who_speaks: WhoSpeaks) -> None:
        self.stage = Stage.met
        self._caller = caller
        self._called = _new_socket()
        self._address = address
        self._who_speaks = who_speaks
        self._there = Flow(caller, self._called, (None, broker_id))
        self._back = Flow(self._called, caller, (broker_id, None))

    @property
    def interests(self) -> list[tuple[socket.socket, int]]:
        """What to wait for: both sockets, each with the events that would move this link on; 0 is none."""
        there, back = self._there, self._back
        match self.stage:
            case Stage.met | Stage.placed:
                events = (0 if there.is_full else selectors.EVENT_READ, 0)
            case Stage.calling:
                events = (0, selectors.EVENT_WRITE)
            case Stage.open:
                events = (_events(there, back), _events(back, there))
            case Stage.closed:
                events = (0, 0)
        return list(zip((self._caller, self._called), events, strict=True))

    def hold(self, is_cut: Callable[[Route], bool]) -> None:
        """Hold the directions that are cut, let the others go."""
        for flow in (self._there, self._back):
            flow.held = is_cut(flow.route)

    def turn(self, descriptor: int, events: int, is_cut: Callable[[Route], bool]) -> None:
        """One of its sockets can do something: do it, and never wait."""
        try:
            if self.stage is Stage.open:
                self._pass(descriptor, events)
            elif self.stage is Stage.calling:
                self._answered()
            else:
                self._listen(is_cut)
                self.move_on()
        except OSError:
            self._break()

    def move_on(self) -> None:
        """Call the broker behind it, when we know who calls and nothing is in the way."""
        if self.stage is not Stage.placed or self._there.held:
            return
        if self._has_given_up():
            self.stage = Stage.closed
        else:
            self.stage = Stage.calling
            code = self._called.connect_ex(self._address)
            if code not in (0, errno.EINPROGRESS):
                self._break()

    def _has_given_up(self) -> bool:
        try:
            return not self._caller.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        self.stage = Stage.closed
        self._caller.close()
        self._called.close()

    def _break(self) -> None:
        """One end is gone without a word: the other shall see the same."""
        self.stage = Stage.closed
        for one in (self._caller, self._called):
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)

    def _listen(self, is_cut: Callable[[Route], bool]) -> None:
        if not self._there.gather():
            self.stage = Stage.closed
        elif self.stage is Stage.met and (frame := _first_frame(self._there.waiting)) is not None:
            caller = self._who_speaks(frame)
            self._there.route = (caller, self._there.route[1])
            self._back.route = (self._back.route[0], caller)
            self.stage = Stage.placed
            self.hold(is_cut)

    def _answered(self) -> None:
        code = self._called.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, "nobody listens there")
        self.stage = Stage.open

    def _pass(self, descriptor: int, events: int) -> None:
        for flow in (self._there, self._back):
            expected = selectors.EVENT_READ if flow.source.fileno() == descriptor else selectors.EVENT_WRITE
            if events & expected and not flow.held and not flow.ended:
                flow.pump()
        if self._there.ended and self._back.ended:
            self.stage = Stage.closed


def _events(comes_from: Flow, goes_to: Flow) -> int:
    """The events of a socket that is the source of one flow and the target of the other."""
    reads = selectors.EVENT_READ if comes_from.wants_to_read else 0
    return reads | (selectors.EVENT_WRITE if goes_to.wants_to_write else 0)


def _first_frame(data: memoryview) -> memoryview | None:
    """The first frame without its length, empty when it can be none; None while it is not all there."""
    start = LENGTH_LAYOUT.size
    if len(data) < start:
        return None
    (length,) = LENGTH_LAYOUT.unpack_from(data)
    if not 0 < length <= FIRST_FRAME_MAX_BYTES:
        return data[:0]
    return data[start : start + length] if len(data) >= start + length else None


def _new_socket() -> socket.socket:
    made = socket.socket()
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made
