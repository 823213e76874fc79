"""A connection to one broker, on an event loop: requests are pipelined, each call waits for its own response.

    connection = await Connection.connect(net, "127.0.0.1", 9092)
    await connection.negotiate()
    answer = await connection.call(MetadataRequest(topics=None))

There are no retries and no routing here: see `cluster`. The frame of a response is copied, so what it holds stays
valid.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from tailrace.client.exchange import FIRST_REQUEST, FIRST_VERSION, NO_CAPS, Exchange
from tailrace.client.faults import ConnectionLost
from tailrace.model.addresses import Address
from tailrace.model.limits import FRAME_MAX_BYTES
from tailrace.ports import Net, Tls
from tailrace.ports.disk import Buffer
from tailrace.wire.framing import FramedProtocol, FrameError
from tailrace.wire.primitives import WireError


class Connection(FramedProtocol):
    def __init__(self, address: Address, client_id: str = "tailrace", caps: Mapping[int, int] = NO_CAPS) -> None:
        super().__init__(FRAME_MAX_BYTES)
        self.address = address
        self.exchange = Exchange(str(address), client_id, caps)

    @classmethod
    async def connect(
        cls,
        net: Net,
        host: str,
        port: int,
        client_id: str = "tailrace",
        *,
        tls: Tls | None = None,
        caps: Mapping[int, int] = NO_CAPS,
    ) -> Self:
        """Connect, and send nothing: calls must say their version until `negotiate` was called."""
        return await net.connect(lambda: cls(Address(host, port), client_id, caps), host, port, tls)

    async def negotiate(self) -> None:
        self.exchange.learn(await self.call(FIRST_REQUEST, FIRST_VERSION))

    @property
    def is_open(self) -> bool:
        return self.transport is not None

    def version(self, api_key: int) -> int:
        return self.exchange.version(api_key)

    async def call(self, request: object, version: int | None = None) -> Any:
        """Send one request and wait for its response. ConnectionLost when the connection closes first."""
        return await self.send(request, version)

    def send(self, request: object, version: int | None = None) -> "asyncio.Future[Any]":
        """Send one request and return a future of its response."""
        if self.transport is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.transport.write(self.exchange.request(request, response, version))
        return response

    def send_raw(self, data: Buffer) -> None:
        """Send bytes as they are: for tests of brokers."""
        if self.transport is None:
            raise ConnectionLost(f"the connection to {self.address} is closed")
        self.transport.write(data)

    def close(self) -> None:
        """Close, once what was sent has left; requests without a response fail."""
        if self.transport is not None:
            self.transport.close()
        self._break("this client closed it")

    # Callbacks of the transport

    def frame_received(self, frame: memoryview) -> None:
        try:
            waiting, response = self.exchange.response(bytes(frame))
        except WireError as error:
            self._break(str(error))
            return
        if not waiting.done():
            waiting.set_result(response)

    def frame_refused(self, error: FrameError) -> None:
        self._break(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        self._break("the broker closed it" if error is None else str(error))

    def _break(self, reason: str) -> None:
        """Close the connection and fail every request that has no response yet."""
        transport, self.transport = self.transport, None
        if transport is not None and not transport.is_closing():
            transport.abort()
        for waiting in self.exchange.abandon():
            if not waiting.done():
                waiting.set_exception(ConnectionLost(f"the connection to {self.address} was lost: {reason}"))
