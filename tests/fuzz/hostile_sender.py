"""A client of a door that sends whole and broken requests, until all clients together have sent enough."""

import asyncio
import random
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Final, Protocol

ANSWER_MAX_S: Final = 60.0
PIECES_BYTES: Final = (1, 7, 100, 5000, 100_000, 10_000_000)


class Tally(Protocol):
    """What is counted of all clients."""

    requests: int
    broken: int
    findings: list[str]


class HostileSender(ABC):
    def __init__(self, port: int, seed: int, tally: Tally, wanted: int, broken_share: float) -> None:
        self._port = port
        self._chance = random.Random(seed)
        self._tally = tally
        self._wanted = wanted  # requests of all senders together
        self._broken_share = broken_share  # of connections

    @abstractmethod
    async def volley(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send whole requests, and check their answers."""

    @abstractmethod
    def broken_bytes(self) -> bytes:
        """What no client should send."""

    async def run(self) -> None:
        while self._tally.requests < self._wanted:
            streams = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                async with asyncio.timeout(ANSWER_MAX_S):
                    if self._chance.random() < self._broken_share:
                        await self._break(*streams)
                    else:
                        for _ in range(self._chance.randint(1, 5)):
                            await self.volley(*streams)
            except TimeoutError:
                self._tally.findings.append(f"no answer within {ANSWER_MAX_S:g} s")
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                self._tally.findings.append(f"a connection with whole requests was closed: {error!r}")
            finally:
                streams[1].close()

    async def send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        """In pieces, wherever they end."""
        at = 0
        while at < len(data):
            size = self._chance.choice(PIECES_BYTES)
            writer.write(data[at : at + size])
            await writer.drain()
            at += size

    async def _break(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tally.requests += 1
        self._tally.broken += 1
        with suppress(ConnectionError):
            writer.write(self.broken_bytes())
            await writer.drain()
            if self._chance.random() < 0.5:
                writer.write_eof()
                await reader.read()  # the server lets go
            else:
                writer.transport.abort()
