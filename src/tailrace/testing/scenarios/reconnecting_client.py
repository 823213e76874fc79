"""A client's connection that is opened again whenever it is lost, and answers None when nobody knows what happened."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tailrace.ports import Ports
from tailrace.wire.client import WireClient

PORT: Final = 9092
ANSWER_MAX_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 0.05


class ReconnectingClient:
    def __init__(self, ports: Ports, name: str, broker: str, patience_seconds: float = ANSWER_MAX_SECONDS) -> None:
        self._ports = ports
        self._name = name
        self._broker = broker
        self._patience_seconds = patience_seconds
        self._client: WireClient | None = None

    async def call(self, request: object, version: int) -> Any | None:
        """One attempt; None: it was carried out or not, nobody knows."""
        return (await self.call_each([request], version))[0]

    async def call_each(self, requests: Sequence[object], version: int) -> list[Any | None]:
        """Send them one behind the other without waiting; the answers, None for those that did not come."""
        try:
            if self._client is None or self._client.transport is None:
                connecting = WireClient.connect(self._ports.net, self._broker, PORT, self._name)
                self._client = await asyncio.wait_for(connecting, self._patience_seconds)
            waiting = [self._client.send(request, version) for request in requests]
            together = asyncio.gather(*waiting, return_exceptions=True)
            answers = await asyncio.wait_for(together, self._patience_seconds)
        except (OSError, TimeoutError):
            self.close()
            return [None for _ in requests]
        return [None if isinstance(answer, OSError) else answer for answer in answers]

    async def insist(self, request: object, version: int) -> Any:
        """Ask until somebody answers."""
        while True:
            answer = await self.call(request, version)
            if answer is not None:
                return answer
            await asyncio.sleep(RETRY_SECONDS)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._client = None
