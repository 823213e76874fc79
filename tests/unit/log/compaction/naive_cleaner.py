"""A cleaner for tests of passes over a log: it keeps or removes whole batches, of one record each, and forgets nothing.

Its methods are those of the session of a pass, without a worker process.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from tailrace.log.state.aborted_index import Aborted
from tailrace.ports.disk import Buffer
from tailrace.records.header import read_header
from tailrace.records.opened import batches, open_batch
from tests.unit.log.logs import filler


class Surveyed(NamedTuple):
    through: int
    full: bool


class Cleaned(NamedTuple):
    data: bytes
    unreadable: tuple[tuple[int, str], ...] = ()
    removed_markers: tuple[tuple[int, int], ...] = ()


class NaiveCleaner:
    def __init__(self, keys_max: int = 1_000_000) -> None:
        self.last: dict[bytes | None, int] = {}
        self.keys_max = keys_max
        self.run: tuple[int, int, int] | None = None  # first and last offset and epoch of removed batches

    async def _answer(self, method: str, *arguments: Any, **named: Any) -> object:
        await asyncio.sleep(0.001)
        return getattr(self, method)(*arguments, **named)

    def call(self, method: str, *arguments: object, **named: object) -> "asyncio.Future[Any]":
        return asyncio.ensure_future(self._answer(method, *arguments, **named))

    def close(self) -> None:
        pass

    def survey(self, data: Buffer, aborted: tuple[Aborted, ...]) -> Surveyed:
        end = 0
        for batch, header in batches(memoryview(data)):
            if len(self.last) >= self.keys_max:
                return Surveyed(header.base_offset, True)
            end = header.last_offset + 1
            if header.is_control or _is_aborted(header.producer_id, header.base_offset, aborted):
                continue
            self.last.update((record.key, record.offset) for record in open_batch(batch))
        return Surveyed(end, False)

    def clean(
        self,
        data: Buffer,
        aborted: tuple[Aborted, ...],
        *,
        horizon: int,
        keep_last: Mapping[int, int],
        keep_epochs: Mapping[int, int],
    ) -> Cleaned:
        out = bytearray()
        for batch, header in batches(memoryview(data)):
            if header.is_control or self._stays(batch, aborted):
                out += self.finish().data + bytes(batch)
                continue
            base, last, epoch = header.base_offset, header.last_offset, header.leader_epoch
            if self.run is not None and self.run[2] != epoch:
                out += self.finish().data
            self.run = (self.run[0] if self.run is not None else base, last, epoch)
        return Cleaned(bytes(out))

    def _stays(self, batch: memoryview, aborted: tuple[Aborted, ...]) -> bool:
        header = read_header(batch)
        if _is_aborted(header.producer_id, header.base_offset, aborted):
            return False
        return any(self.last.get(record.key, -1) <= record.offset for record in open_batch(batch))

    def finish(self) -> Cleaned:
        run, self.run = self.run, None
        return Cleaned(b"" if run is None else bytes(filler(*run)))


def _is_aborted(producer_id: int, offset: int, aborted: tuple[Aborted, ...]) -> bool:
    return any(one.producer_id == producer_id and one.first_offset <= offset <= one.last_offset for one in aborted)
