"""The network between the brokers of a test, in the hands of the test: cut any pair apart, and heal.

In front of each broker's peer port stands a door of ours; its port is the one that peers are told. The first frame of
a connection says which broker calls, so every connection is a route from one broker to another and back, and a route
that is cut passes nothing: no byte, no end, no reset, and no new connection. What waited goes on when it heals.
No root, no packet filter, no other machine: it is bytes from one socket to the other, in one thread of this process.

All state belongs to that thread. The test asks it to do things, and waits until they are done: after `cut` returns, no
byte passes any more.
"""

import queue
import selectors
import socket
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, NamedTuple, TypeVar

from tailrace.testing.flows import Link, Route, Stage, WhoSpeaks
from tailrace.wire.compile import decode_whole
from tailrace.wire.headers import read_request_header
from tailrace.wire.messages.peers.hello import PeerHello
from tailrace.wire.primitives import WireError
from tailrace.wire.schema import declaration

T = TypeVar("T")

LINKS_MAX: Final = 1_000  # connections at once; more callers are turned away
BACKLOG_MAX: Final = 128
COMMAND_TIMEOUT_S: Final = 10.0
LOOPBACK: Final = "127.0.0.1"


def broker_that_speaks(frame: memoryview) -> int | None:
    """Whose connection this is, by its first frame; None for a joiner without an id, and for nonsense."""
    hello = declaration(PeerHello)
    try:
        api_key, version, _, _, at = read_request_header(frame, 0, {hello.number: hello.flexible.first})
        said = decode_whole(PeerHello, version, bytes(frame), at) if api_key == hello.number else None
    except WireError:
        return None
    return said.broker_id if said is not None and said.broker_id >= 0 else None


class _Door(NamedTuple):
    """Where peers knock who mean this broker, and where it really listens."""

    listener: socket.socket
    broker_id: int
    port_behind: int


class Network:
    """A thread that carries bytes. Use it as a context manager, or `close` it."""

    def __init__(self, who_speaks: WhoSpeaks = broker_that_speaks) -> None:
        self._who_speaks = who_speaks
        self._cut: set[Route] = set()
        self._links: dict[Link, None] = {}
        self._selector = selectors.DefaultSelector()
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._bell, self._ring = socket.socketpair()
        self._selector.register(self._bell, selectors.EVENT_READ, None)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="tailrace-network", daemon=True)
        self._thread.start()

    def __enter__(self) -> "Network":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_door(self, broker_id: int, port_behind: int, *, port: int = 0) -> int:
        """Listen for those who mean this broker; the port that peers are to be told. OSError when it is taken."""
        listener = socket.create_server((LOOPBACK, port), backlog=BACKLOG_MAX)
        listener.setblocking(False)
        door = _Door(listener, broker_id, port_behind)
        self._do(lambda: self._selector.register(listener, selectors.EVENT_READ, door))
        return int(listener.getsockname()[1])

    def cut(self, *routes: Route) -> None:
        """Pass nothing from the first to the second of each pair, until `heal`."""
        self._do(lambda: self._hold(self._cut | set(routes)))

    def heal(self) -> None:
        self._do(lambda: self._hold(set()))

    def close(self) -> None:
        if self._thread.is_alive():
            self._do(self._end)
            self._thread.join(COMMAND_TIMEOUT_S)
            self._ring.close()
            self._bell.close()  # not before: the thread may have obeyed before we rang

    def _do(self, command: Callable[[], T]) -> T:
        """Run it in the thread; its result, when it is done."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(command())
            except BaseException as error:
                done.set_exception(error)

        self._commands.put(run)
        self._ring.send(b"!")  # the thread may wait for nothing but this
        return done.result(COMMAND_TIMEOUT_S)

    def _run(self) -> None:
        while not self._closing:
            for key, events in self._selector.select():
                match key.data:
                    case Link() as link if link in self._links:  # its other socket may just have ended it
                        link.turn(key.fd, events, self._cut.__contains__)
                        self._watch([link])
                    case _Door() as door:
                        self._admit(door)
                    case None:
                        self._bell.recv(4096)
            while not self._commands.empty():
                self._commands.get()()

    def _admit(self, door: _Door) -> None:
        try:
            caller, _ = door.listener.accept()
        except OSError:
            return  # it went away before we came
        if len(self._links) >= LINKS_MAX:
            caller.close()
            return
        caller.setblocking(False)
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        link = Link(caller, door.broker_id, (LOOPBACK, door.port_behind), self._who_speaks)
        self._links[link] = None
        self._watch([link])

    def _hold(self, cut: set[Route]) -> None:
        self._cut = cut
        for link in self._links:
            link.hold(cut.__contains__)
            link.move_on()
        self._watch(list(self._links))

    def _watch(self, links: Iterable[Link]) -> None:
        """Have the selector wait for what each link wants now."""
        watched = self._selector.get_map()
        for link in links:
            for one, events in link.interests:
                if not events and one in watched:
                    self._selector.unregister(one)
                elif events and one not in watched:
                    self._selector.register(one, events, link)
                elif events and watched[one].events != events:
                    self._selector.modify(one, events, link)
            if link.stage is Stage.closed:
                self._links.pop(link, None)
                link.close()

    def _end(self) -> None:
        self._closing = True
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, _Door):
                key.data.listener.close()
        for link in self._links:
            link.close()
        self._selector.close()
