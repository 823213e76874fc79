"""Connections that shoot frames, many at once and pipelined, and see what becomes of each.

Behind a volley stands one valid ApiVersions request: when that is answered, the connection lives and all before it is
done. When the broker hangs up instead, the first frame without an answer is taken for the cause, and those behind it go
again with the next connection. So every frame counts once, and each was really looked at.
"""

import asyncio
import struct
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tailrace.wire.headers import request_header
from tests.fuzz.plan import Shot, with_length

VOLLEY_MAX: Final = 24
ANSWER_MAX_S: Final = 20.0
LAST_ID: Final = 1_000_000
LAST_BODY: Final = request_header(18, 0, LAST_ID, "fuzz", False)
LAST: Final = struct.pack(">i", len(LAST_BODY)) + LAST_BODY


class Hung(AssertionError):
    """The broker neither answers nor hangs up."""


@dataclass(slots=True)
class Tally:
    kinds: Counter[str] = field(default_factory=Counter)
    covered: Counter[tuple[int, int]] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    connections: int = 0

    @property
    def frames(self) -> int:
        return sum(self.fates.values())

    def note(self, shot: Shot, fate: str) -> None:
        self.kinds[shot.kind] += 1
        self.covered[shot.key, shot.version] += 1
        self.fates[fate] += 1


class Sender:
    """One connection after the other, until the shots are used up."""

    def __init__(self, port: int, shots: Iterator[Shot], tally: Tally) -> None:
        self._port = port
        self._shots = shots
        self._tally = tally
        self._again: deque[Shot] = deque()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self) -> None:
        while volley := self._next_volley():
            try:
                async with asyncio.timeout(ANSWER_MAX_S):
                    await self._shoot(volley)
            except TimeoutError:
                shown = "\n".join(f"{shot.kind} {shot.frame.hex()}" for shot in volley)
                raise Hung(f"no answer in {ANSWER_MAX_S:.0f} s to some of\n{shown}") from None
        self._hang_up()

    def _next_volley(self) -> list[Shot]:
        volley: list[Shot] = []
        while len(volley) < VOLLEY_MAX:
            shot = self._again.popleft() if self._again else next(self._shots, None)
            if shot is None:
                break
            if _alone(shot) and volley:
                self._again.appendleft(shot)
                break
            volley.append(shot)
            if _alone(shot):
                break
        return volley

    async def _shoot(self, volley: list[Shot]) -> None:
        reader, writer = await self._connected()
        writer.write(b"".join(with_length(shot, number) for number, shot in enumerate(volley)))
        if _alone(volley[0]):
            await self._watch_the_end(volley[0], reader, writer)
            return
        writer.write(LAST)
        answered, alive = await self._answers(reader, len(volley))
        for number in answered:
            self._tally.note(volley[number], "answered")
        silent = [number for number in range(len(volley)) if number not in answered]
        if alive:
            for number in silent:
                self._tally.note(volley[number], "done, not answered")
            return
        self._hang_up()
        done = max(answered, default=-1)
        for number in silent:
            if number < done:
                self._tally.note(volley[number], "done, not answered")
        if done + 1 < len(volley):
            self._tally.note(volley[done + 1], "hung up on")
        self._again.extendleft(reversed(volley[done + 2 :]))

    async def _answers(self, reader: asyncio.StreamReader, count: int) -> tuple[dict[int, None], bool]:
        """Which were answered, and whether the connection lives."""
        answered: dict[int, None] = {}
        try:
            while True:
                size, number = struct.unpack(">ii", await reader.readexactly(8))
                await reader.readexactly(size - 4)
                if number == LAST_ID:
                    return answered, True
                answered[number] = None
        except (asyncio.IncompleteReadError, ConnectionError):
            return answered, False

    async def _watch_the_end(self, shot: Shot, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Say that no more will come; the broker must then let go of the connection."""
        if shot.hang_up:
            self._tally.note(shot, "left waiting")
            self._hang_up()
            return
        with suppress(ConnectionError, OSError):
            writer.write_eof()
            await reader.read()
        self._tally.note(shot, "hung up on")
        self._hang_up()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            self._tally.connections += 1
        return self._streams

    def _hang_up(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def _alone(shot: Shot) -> bool:
    """Whether nothing can be told apart behind this frame on its connection."""
    return shot.hang_up or shot.told != len(shot.frame)


async def send_all(port: int, shots: Iterator[Shot], frames: int, connections: int, tally: Tally) -> None:
    """So many frames, over so many connections at once."""
    portion = islice(shots, frames)
    senders = [asyncio.create_task(Sender(port, portion, tally).run()) for _ in range(connections)]
    try:
        for sender in senders:
            await sender
    finally:
        for sender in senders:
            sender.cancel()
