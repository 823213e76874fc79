"""The network between machines: who listens where, which ways are cut, which connections are open.

Hosts are machines by name. A machine is reached under its name, by itself also as localhost; one that listens on
127.0.0.1 only is reached by itself only. A cut is one-way; TCP needs both, so either one stalls a connection.
A process that dies has its connections reset; a machine without power says nothing at all until its peers give up.
"""

import asyncio
import errno
import os
import random
from collections.abc import Callable
from contextvars import Context
from typing import Final

from tailrace.testing.simulation.chance import Delay, Odds
from tailrace.testing.simulation.endpoint import Address, Endpoint
from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.link import Link
from tailrace.testing.simulation.loop import SimLoop

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
EVERYWHERE: Final = ("0.0.0.0", "::", "")
PORTS_PICKED_FROM: Final = 32768

Factory = Callable[[], asyncio.BaseProtocol]


class Listening:
    """One bound port."""

    def __init__(self, process: Incarnation, factory: Factory, *, local: bool) -> None:
        self.process = process
        self.factory = factory
        self.local = local


class Network:
    def __init__(self, loop: SimLoop, chance: random.Random, odds: Odds, trace: Callable[..., None]) -> None:
        self._loop = loop
        self._chance = chance
        self._odds = odds
        self._trace = trace
        self._kernel = Context()
        self._has_power: dict[str, bool] = {}
        self._cuts: dict[tuple[str, str], None] = {}
        self._listening: dict[Address, Listening] = {}
        self._ports_picked: dict[str, int] = {}
        self._serial = 0
        self._connections: dict[int, tuple[Endpoint, Endpoint]] = {}

    # Faults

    def cut(self, source: str, target: str, *, one_way: bool = False) -> None:
        """Let nothing through from source to target, nor back unless `one_way`."""
        self._trace("cut", source, target, one_way)
        self._cuts[source, target] = None
        if not one_way:
            self._cuts[target, source] = None

    def isolate(self, host: str) -> None:
        for other in self._has_power:
            if other != host:
                self.cut(host, other)

    def heal(self, source: str | None = None, target: str | None = None) -> None:
        """Undo the cuts between two hosts, of one host, or all."""
        self._trace("heal", source, target)
        for pair in list(self._cuts):
            if (source is None or source in pair) and (target is None or target in pair):
                del self._cuts[pair]
        self._go_on()

    def reset(self, one: str, other: str) -> int:
        """Reset all connections between two hosts; how many there were."""
        hit = [pair for pair in self._connections.values() if sorted(map(_host, pair)) == sorted((one, other))]
        for pair in hit:
            for end in pair:
                end.fail(ConnectionResetError("connection reset"))
        return len(hit)

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    # Machines

    def powered(self, host: str) -> None:
        self._has_power[host] = True
        self._go_on()

    def process_died(self, process: Incarnation, *, power_loss: bool) -> None:
        for address in [one for one, listening in self._listening.items() if listening.process is process]:
            del self._listening[address]
        if power_loss:
            self._has_power[process.name] = False
        for pair in list(self._connections.values()):
            for end, other in (pair, pair[::-1]):
                if end.process is process and not end.lost:
                    if power_loss:
                        end.power_cut()
                        self._later(self._odds.silence, other.fail, TimeoutError(errno.ETIMEDOUT, "peer is silent"))
                    else:
                        end.process_died()

    # What the port asks

    def listen(self, process: Incarnation, factory: Factory, host: str, port: int) -> int:
        if host not in (*LOOPBACK, *EVERYWHERE, process.name):
            raise _failed(errno.EADDRNOTAVAIL, f"{host}:{port}")
        address = (process.name, port or self._pick_port(process.name))
        if address in self._listening:
            raise _failed(errno.EADDRINUSE, f"{host}:{port}")
        self._listening[address] = Listening(process, factory, local=host in LOOPBACK)
        return address[1]

    def stop_listening(self, host: str, port: int) -> None:
        self._listening.pop((host, port), None)

    def connect(self, process: Incarnation, host: str, port: int) -> "asyncio.Future[Endpoint]":
        """A new connection's near end, which has no protocol yet."""
        target = process.name if host in (*LOOPBACK, *EVERYWHERE) else host
        if target not in self._has_power:
            raise _failed(errno.EHOSTUNREACH, f"{host}:{port}")
        future: asyncio.Future[Endpoint] = self._loop.create_future()
        give_up_at = self._loop.time() + self._odds.silence.draw(self._chance)
        self._later(self._odds.link, self._knock, process, (target, port), future, give_up_at)
        return future

    def _knock(
        self, process: Incarnation, address: Address, future: "asyncio.Future[Endpoint]", give_up_at: float
    ) -> None:
        if future.done() or not process.alive:
            return
        if self._is_cut(process.name, address[0]) or self._is_cut(address[0], process.name):
            if self._loop.time() >= give_up_at:
                future.set_exception(_failed(errno.ETIMEDOUT, f"{address[0]}:{address[1]}"))
            else:
                self._later(self._odds.retransmit, self._knock, process, address, future, give_up_at)
            return
        listening = self._listening.get(address)
        if listening is None or (listening.local and process.name != address[0]):
            future.set_exception(_failed(errno.ECONNREFUSED, f"{address[0]}:{address[1]}"))
            return
        near = self._open(process, listening, address)
        self._later(self._odds.link, _opened, future, near)

    def _open(self, process: Incarnation, listening: Listening, address: Address) -> Endpoint:
        self._serial += 1
        serial = self._serial
        here = (process.name, self._pick_port(process.name))
        ends: list[Endpoint] = []

        def lost() -> None:
            if all(end.lost for end in ends):
                self._connections.pop(serial, None)

        def silent() -> None:
            for end in ends:
                end.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

        for owner, addresses in ((process, (here, address)), (listening.process, (address, here))):
            source, target = addresses[0][0], addresses[1][0]
            link = Link(self._loop, self._chance, self._odds, lambda a=source, b=target: self._is_cut(a, b), silent)  # type: ignore[misc]
            ends.append(Endpoint(self._loop, self._chance, owner, link, addresses, lost, self._trace))
        near, far = ends
        near.peer, far.peer = far, near
        near.link.receiver, far.link.receiver = far, near
        self._connections[serial] = (near, far)
        self._trace("connect", here[0], here[1], address[0], address[1])
        far.accept(listening.factory)
        return near

    def _is_cut(self, source: str, target: str) -> bool:
        return (source, target) in self._cuts or not self._has_power[target]

    def _go_on(self) -> None:
        for pair in list(self._connections.values()):
            for end in pair:
                end.link.heal()

    def _pick_port(self, host: str) -> int:
        self._ports_picked[host] = self._ports_picked.get(host, PORTS_PICKED_FROM - 1) + 1
        return self._ports_picked[host]

    def _later(self, delay: Delay, call: Callable[..., None], *arguments: object) -> None:
        self._loop.call_later(delay.draw(self._chance), call, *arguments, context=self._kernel)


def _opened(future: "asyncio.Future[Endpoint]", near: Endpoint) -> None:
    if near.process.alive:
        if future.cancelled():
            near.abort()
        elif not future.done():
            future.set_result(near)


def _host(end: Endpoint) -> str:
    return end.process.name


def _failed(number: int, where: str) -> OSError:
    return OSError(number, f"{os.strerror(number)}: {where}")
