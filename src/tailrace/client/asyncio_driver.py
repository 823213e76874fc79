"""The driver of the client on an event loop: connections through the net port, time and randomness through theirs."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, TypeVar

from tailrace.client.cluster import VERSION_CAPS
from tailrace.client.connection import Connection
from tailrace.client.driver import PortsDriver
from tailrace.client.faults import SecurityRefused
from tailrace.client.sasl import Sasl, log_in
from tailrace.model.addresses import Address
from tailrace.ports import Clock, Net, Random, Tls

T = TypeVar("T")


class AsyncioDriver(PortsDriver):
    def __init__(
        self,
        net: Net,
        clock: Clock,
        random: Random,
        client_id: str = "tailrace",
        *,
        tls: Tls | None = None,
        sasl: Sasl | None = None,
    ) -> None:
        super().__init__(clock, random)
        self._net = net
        self._client_id = client_id
        self._tls = tls
        self._sasl = sasl
        self._shared: dict[Hashable, asyncio.Future[Any]] = {}

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, work: Coroutine[Any, Any, T]) -> T:
        async with asyncio.timeout(seconds):
            return await work

    async def connect(self, address: Address) -> Connection:
        try:
            connection = await Connection.connect(
                self._net, address.host, address.port, self._client_id, tls=self._tls, caps=VERSION_CAPS
            )
        except ConnectionError as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise SecurityRefused(str(error)) from None
            raise
        try:
            await connection.negotiate()
            if self._sasl is not None:
                await log_in(connection.call, self._sasl, str(address), self._random)
        except BaseException:
            connection.close()
            raise
        return connection

    async def share(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = asyncio.ensure_future(work())
            shared.add_done_callback(lambda done: self._done(key, done))
        return await asyncio.shield(shared)  # a caller that gives up does not take it from the others

    def _done(self, key: Hashable, shared: "asyncio.Future[Any]") -> None:
        del self._shared[key]
        if not shared.cancelled():
            shared.exception()  # all callers may have given up: nobody else looks at it
