"""A client connection that reconnects when it is lost.

A request that gets no response in time returns None: the broker may or may not have executed it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tailrace.client.connection import Connection
from tailrace.ports import Ports

PORT: Final = 9092
RESPONSE_MAX_SECONDS: Final = 5.0  # virtual
RETRY_SECONDS: Final = 0.05


class ReconnectingClient:
    def __init__(self, ports: Ports, name: str, broker: str, timeout_seconds: float = RESPONSE_MAX_SECONDS) -> None:
        self._ports = ports
        self._name = name
        self._broker = broker
        self._timeout_seconds = timeout_seconds
        self._client: Connection | None = None

    async def call(self, request: object, version: int) -> Any | None:
        """Send a request once; None if no response came."""
        return (await self.call_pipelined([request], version))[0]

    async def call_pipelined(self, requests: Sequence[object], version: int) -> list[Any | None]:
        """Send all requests without waiting in between; returns the responses, None for each that did not come."""
        try:
            if self._client is None or self._client.transport is None:
                connecting = Connection.connect(self._ports.net, self._broker, PORT, self._name)
                self._client = await asyncio.wait_for(connecting, self._timeout_seconds)
            pending = [self._client.send(request, version) for request in requests]
            all_pending = asyncio.gather(*pending, return_exceptions=True)
            responses = await asyncio.wait_for(all_pending, self._timeout_seconds)
        except (OSError, TimeoutError):
            self.close()
            return [None for _ in requests]
        return [None if isinstance(response, OSError) else response for response in responses]

    async def call_until_answered(self, request: object, version: int) -> Any:
        """Repeat a request until a response comes."""
        while True:
            response = await self.call(request, version)
            if response is not None:
                return response
            await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
