"""The network between machines: bound ports, partitions and open connections; and the net port of one process.

A machine's name is its host name; a machine also reaches itself as localhost. A process that binds 127.0.0.1 can be
reached only from its own machine. A cut drops everything from one host to another. A TCP connection needs both
directions to be opened, and either direction of an open one can stall by itself.

When a process is killed, its kernel resets its connections. When a machine loses power, its peers get no answer at all
and notice only when TCP gives up.
"""

import asyncio
import errno
import os
import random
from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeVar

from tailrace.ports.tls import Tls, TlsFiles
from tailrace.testing.simulation.endpoint import Address, Endpoint
from tailrace.testing.simulation.link import Link
from tailrace.testing.simulation.loop import SimLoop
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.randomness import Delay, Odds
from tailrace.testing.simulation.tls import SimTls, handshake_problem

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
ANY_ADDRESS: Final = ("0.0.0.0", "::", "")
EPHEMERAL_PORT_FIRST: Final = 32768

Factory = Callable[[], asyncio.BaseProtocol]
P = TypeVar("P", bound=asyncio.BaseProtocol)


class BoundPort:
    def __init__(self, process: SimProcess, factory: Factory, tls: Tls | None, *, local: bool) -> None:
        self.process = process
        self.factory = factory
        self.tls = tls
        self.local = local  # bound to a loopback address


class Network:
    def __init__(self, loop: SimLoop, rng: random.Random, odds: Odds, trace: Callable[..., None]) -> None:
        self._loop = loop
        self._rng = rng
        self._odds = odds
        self._trace = trace
        self._kernel = Context()  # what the kernel does belongs to no process
        self._has_power: dict[str, bool] = {}
        self._cuts: dict[tuple[str, str], None] = {}  # (source, target), in the order of the cuts
        self._bound: dict[Address, BoundPort] = {}
        self._last_ephemeral_port: dict[str, int] = {}  # by host
        self._serial = 0
        self._connections: dict[int, tuple[Endpoint, Endpoint]] = {}

    # Faults

    def cut(self, source: str, target: str, *, one_way: bool = False) -> None:
        """Drop everything from source to target, and also from target to source unless `one_way`."""
        self._trace("cut", source, target, one_way)
        self._cuts[source, target] = None
        if not one_way:
            self._cuts[target, source] = None

    def isolate(self, host: str) -> None:
        """Cut a host off from every other host, in both directions."""
        for other in self._has_power:
            if other != host:
                self.cut(host, other)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Undo the cuts between two hosts, or all cuts of one host, or all cuts."""
        self._trace("heal", source, target)
        for pair in list(self._cuts):
            if (source is None or source in pair) and (target is None or target in pair):
                del self._cuts[pair]
        self._retransmit()

    def reset(self, one: str, other: str) -> int:
        """Reset all connections between two hosts; returns how many there were."""
        hit = [pair for pair in self._connections.values() if sorted(map(_host, pair)) == sorted((one, other))]
        for pair in hit:
            for end in pair:
                end.fail(ConnectionResetError("connection reset"))
        return len(hit)

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    # Machines

    def power_on(self, host: str) -> None:
        self._has_power[host] = True
        self._retransmit()

    def process_died(self, process: SimProcess, *, power_loss: bool) -> None:
        for address in [address for address, bound in self._bound.items() if bound.process is process]:
            del self._bound[address]
        if power_loss:
            self._has_power[process.machine] = False
        for pair in list(self._connections.values()):
            for end, other in (pair, pair[::-1]):
                if end.process is process and not end.lost:
                    if power_loss:
                        end.power_cut()
                        self._later(
                            self._odds.silence, other.fail, TimeoutError(errno.ETIMEDOUT, "peer does not answer")
                        )
                    else:
                        end.process_died()

    # Calls of the net port

    def listen(self, process: SimProcess, factory: Factory, host: str, port: int, tls: Tls | None = None) -> int:
        if host not in (*LOOPBACK, *ANY_ADDRESS, process.machine):
            raise _os_error(errno.EADDRNOTAVAIL, f"{host}:{port}")
        address = (process.machine, port or self._next_ephemeral_port(process.machine))
        if address in self._bound:
            raise _os_error(errno.EADDRINUSE, f"{host}:{port}")
        self._bound[address] = BoundPort(process, factory, tls, local=host in LOOPBACK)
        return address[1]

    def stop_listening(self, host: str, port: int) -> None:
        self._bound.pop((host, port), None)

    def connect(self, process: SimProcess, host: str, port: int, tls: Tls | None = None) -> "asyncio.Future[Endpoint]":
        """Open a connection; the future's result is the near end, which has no protocol yet."""
        target = process.machine if host in (*LOOPBACK, *ANY_ADDRESS) else host
        if target not in self._has_power:
            raise _os_error(errno.EHOSTUNREACH, f"{host}:{port}")
        future: asyncio.Future[Endpoint] = self._loop.create_future()
        give_up_at = self._loop.time() + self._odds.silence.draw(self._rng)
        self._later(self._odds.link, self._handshake, process, (target, port), tls, future, give_up_at)
        return future

    def _handshake(
        self,
        process: SimProcess,
        address: Address,
        tls: Tls | None,
        future: "asyncio.Future[Endpoint]",
        give_up_at: float,
    ) -> None:
        if future.done() or not process.alive:
            return
        if self._is_cut(process.machine, address[0]) or self._is_cut(address[0], process.machine):
            if self._loop.time() >= give_up_at:
                future.set_exception(_os_error(errno.ETIMEDOUT, f"{address[0]}:{address[1]}"))
            else:
                self._later(self._odds.retransmit, self._handshake, process, address, tls, future, give_up_at)
            return
        bound = self._bound.get(address)
        if bound is None or (bound.local and process.machine != address[0]):
            future.set_exception(_os_error(errno.ECONNREFUSED, f"{address[0]}:{address[1]}"))
            return
        if tls is None and bound.tls is None:
            near = self._open(process, bound, address)
            self._later(self._odds.link, _finish_connect, future, near)
        else:
            self._later(self._odds.tls, self._tls_handshake, process, bound, address, tls, future)

    def _tls_handshake(
        self,
        process: SimProcess,
        bound: BoundPort,
        address: Address,
        tls: Tls | None,
        future: "asyncio.Future[Endpoint]",
    ) -> None:
        """The end of a TLS handshake. As with the real listener, only a handshake that succeeds makes a connection."""
        if future.done() or not process.alive:
            return
        problem = handshake_problem(tls, bound.tls)
        if self._bound.get(address) is not bound or self._rng.random() < self._odds.tls_failure_chance:
            problem = "the connection was lost during the handshake"
        if problem:
            self._trace("no tls", process.machine, address[0], address[1], problem)
            future.set_exception(ConnectionError(f"no TLS with {address[0]}:{address[1]}: {problem}"))
            return
        near = self._open(process, bound, address)
        self._later(self._odds.link, _finish_connect, future, near)

    def _open(self, process: SimProcess, bound: BoundPort, address: Address) -> Endpoint:
        self._serial += 1
        serial = self._serial
        here = (process.machine, self._next_ephemeral_port(process.machine))
        ends: list[Endpoint] = []

        def forget_if_lost() -> None:
            if all(end.lost for end in ends):
                self._connections.pop(serial, None)

        def time_out() -> None:
            for end in ends:
                end.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

        for owner, addresses in ((process, (here, address)), (bound.process, (address, here))):
            source, target = addresses[0][0], addresses[1][0]
            link = Link(self._loop, self._rng, self._odds, lambda a=source, b=target: self._is_cut(a, b), time_out)  # type: ignore[misc]
            ends.append(Endpoint(self._loop, self._rng, owner, link, addresses, forget_if_lost, self._trace))
        near, far = ends
        near.peer, far.peer = far, near
        near.link.receiver, far.link.receiver = far, near
        self._connections[serial] = (near, far)
        self._trace("connect", here[0], here[1], address[0], address[1])
        far.accept(bound.factory)
        return near

    def _is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts or not self._has_power[target]

    def _retransmit(self) -> None:
        """Let every stalled connection whose way is free again go on."""
        for pair in list(self._connections.values()):
            for end in pair:
                end.link.heal()

    def _next_ephemeral_port(self, host: str) -> int:
        self._last_ephemeral_port[host] = self._last_ephemeral_port.get(host, EPHEMERAL_PORT_FIRST - 1) + 1
        return self._last_ephemeral_port[host]

    def _later(self, delay: Delay, call: Callable[..., None], *arguments: object) -> None:
        self._loop.call_later(delay.draw(self._rng), call, *arguments, context=self._kernel)


class SimListener:
    def __init__(self, network: Network, process: SimProcess, port: int) -> None:
        self._network = network
        self._process = process
        self._port = port

    @property
    def port(self) -> int:
        return self._port

    def close(self) -> None:
        self._process.check_alive()
        self._network.stop_listening(self._process.machine, self._port)


class SimNet:
    """The net port of one process."""

    def __init__(self, network: Network, process: SimProcess) -> None:
        self._network = network
        self._process = process

    def load_tls(self, files: TlsFiles) -> Tls:
        return SimTls(files)

    async def listen(self, factory: Factory, host: str, port: int, tls: Tls | None = None) -> SimListener:
        self._process.check_alive()
        bound = self._network.listen(self._process, factory, host, port, tls)
        return SimListener(self._network, self._process, bound)

    async def connect(self, factory: Callable[[], P], host: str, port: int, tls: Tls | None = None) -> P:
        self._process.check_alive()
        opening = self._network.connect(self._process, host, port, tls)
        try:
            endpoint = await opening
        except asyncio.CancelledError:
            if opening.done() and not opening.cancelled() and opening.exception() is None:
                opening.result().abort()
            raise
        protocol = factory()
        endpoint.start(protocol)
        return protocol


def _finish_connect(future: "asyncio.Future[Endpoint]", near: Endpoint) -> None:
    if near.process.alive:
        if future.cancelled():
            near.abort()
        elif not future.done():
            future.set_result(near)


def _host(end: Endpoint) -> str:
    return end.process.machine


def _os_error(number: int, address: str) -> OSError:
    return OSError(number, f"{os.strerror(number)}: {address}")
