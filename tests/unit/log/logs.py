"""Logs in a temporary folder, batches to append, and a disk that a test can make full, cold or slow."""

import asyncio
import errno
import functools
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tailrace.log.directory.state_file import write_state
from tailrace.log.log import Appended, Log, RecoveryPoint
from tailrace.model.settings import Fsync, Settings
from tailrace.model.topics import TopicSettings
from tailrace.ports import Ports, system_ports
from tailrace.ports.disk import Buffer, File
from tailrace.ports.offload import SystemOffload
from tailrace.ports.system_disk import SystemDisk, SystemFile
from tailrace.records.build import build_batch, seal_batch
from tailrace.records.compress import Compression
from tailrace.records.crc import crc32c
from tailrace.records.header import CHECKED_FROM, CRC_AT, check_batch
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import NewRecord, Record

NOW = 1_700_000_000_000
DAY_MS = 86_400_000
LAST_OFFSET_DELTA_AT = 23
opened: list[Ports] = []


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on its own event loop."""

    @functools.wraps(test)
    def run(*arguments: Any, **fixtures: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(20):
                await test(*arguments, **fixtures)

        try:
            asyncio.run(bounded())
        finally:
            give_up_descriptors()

    return run


def give_up_descriptors() -> None:
    """Close the descriptors of logs that a test left open, as a crash does: the test process has only so many."""
    while opened:
        disk = opened.pop().disk
        if isinstance(disk, SystemDisk):
            for file in list(disk._open):
                file.close_descriptor()


def topic(**settings: int | str) -> TopicSettings:
    own = {name.replace("_", "."): str(value) for name, value in settings.items()}
    return TopicSettings.of(own, Settings())


def one_batch(
    values: Sequence[bytes] = (b"v",),
    *,
    timestamps: Sequence[int] | None = None,
    producer: tuple[int, int, int] | None = None,
    compression: Compression = "none",
    base_offset: int = 0,
    epoch: int = -1,
) -> memoryview:
    """A batch of these values; `producer` is (id, epoch, first sequence)."""
    times = timestamps if timestamps is not None else [NOW] * len(values)
    producer_id, producer_epoch, sequence = producer or (-1, -1, -1)
    return memoryview(
        build_batch(
            [NewRecord(value=value, timestamp=time) for value, time in zip(values, times, strict=True)],
            compression=compression,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
            base_offset=base_offset,
            leader_epoch=epoch,
        )
    )


def filler(base: int, last: int, epoch: int = 1) -> memoryview:
    """The empty batch that compaction leaves in place of the batches with offsets `base` to `last`."""
    batch = bytearray(
        seal_batch(b"", count=0, base_timestamp=-1, max_timestamp=-1, base_offset=base, leader_epoch=epoch)
    )
    batch[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (last - base).to_bytes(4)
    batch[CRC_AT : CRC_AT + 4] = crc32c(batch[CHECKED_FROM:]).to_bytes(4)
    return memoryview(batch)


def write_gap(folder: Path, end: int, next_offset: int) -> None:
    """As earlier releases recorded that a log which ended at `end` continues at `next_offset`."""
    (folder / f"{end:020d}.gap").write_bytes(write_state("gap", 1, [str(next_offset)]))


def put(log: Log, batch: memoryview | None = None, *, epoch: int = 1, now_ms: int = NOW) -> Appended:
    batch = one_batch() if batch is None else batch
    return log.append(batch, check_batch(batch), epoch, now_ms)


async def open_log(
    folder: object,
    *,
    settings: TopicSettings | None = None,
    fsync: Fsync = "never",
    recovery: RecoveryPoint | None = None,
    clean: bool = False,
    may_truncate: bool = True,
    ports: Ports | None = None,
) -> Log:
    ports = ports or system_ports()
    opened.append(ports)
    return await Log.open(
        str(folder),
        ports,
        settings=settings or topic(),
        fsync=fsync,
        recovery=recovery,
        clean=clean,
        may_truncate=may_truncate,
        producer_expiration_ms=DAY_MS,
    )


async def read(log: Log, offset: int, max_bytes: int = 1 << 20, limit: int | None = None) -> tuple[Buffer, int]:
    limit = log.end if limit is None else limit
    got = log.read(offset, max_bytes, limit) or await log.read_cold(offset, max_bytes, limit)
    return got.data, got.next_offset


async def everything(log: Log, limit: int | None = None) -> list[Record]:
    """All records from the log start on, as a consumer would get them."""
    offset, records = log.start, []
    limit = log.end if limit is None else limit
    while offset < limit:
        data, following = await read(log, offset, 700, limit)
        if following == offset:
            break
        for batch, _ in batches(data):
            records += [record for record in open_batch(batch) if record.offset >= offset]
        offset = following
    return records


def segment_path(folder: Path, base: int = 0) -> Path:
    return folder / f"{base:020d}.log"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def image_of(folder: Path) -> dict[str, bytes]:
    """A folder's files, to be put back with `restore`."""
    return {name: (folder / name).read_bytes() for name in names(folder)}


def restore(folder: Path, image: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name in names(folder):
        (folder / name).unlink()
    for name, data in image.items():
        (folder / name).write_bytes(data)


def cut_file(path: Path, size: int) -> None:
    os.truncate(path, size)


class TroubleFile(SystemFile):
    def __init__(self, path: str, disk: "TroubleDisk") -> None:
        super().__init__(path, disk)
        self._trouble = disk

    def write(self, data: Buffer, position: int) -> None:
        room = self._trouble.room_bytes
        if room is not None and self.path.endswith(".log") and len(data) > room:
            super().write(memoryview(data)[:room], position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(data, position)

    def read_cached(self, position: int, size: int) -> Buffer | None:
        return None if self._trouble.cold else super().read_cached(position, size)

    def sync_then(self, ended: Callable[[BaseException | None], None]) -> None:
        if self._trouble.hold:
            held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._trouble.held.append((self.path, held))
            held.add_done_callback(lambda sync: ended(sync.exception()))
        else:
            super().sync_then(ended)


class TroubleDisk(SystemDisk):
    """A disk that can be full, cold, or slow: `held` fsyncs end when the test releases them."""

    def __init__(self, offload: SystemOffload) -> None:
        super().__init__(offload)
        self.room_bytes: int | None = None
        self.cold = False
        self.hold = False
        self.held: list[tuple[str, asyncio.Future[None]]] = []

    def open(self, path: str) -> File:
        file = TroubleFile(path, self)
        file.size()
        return file

    def sync_dir(self, path: str) -> "asyncio.Future[None]":
        if self.hold:
            held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.held.append((path, held))
            return held
        return super().sync_dir(path)

    def held_names(self) -> list[str]:
        return sorted(os.path.basename(path) for path, _ in self.held)

    async def release(self) -> None:
        """Let the held fsyncs succeed, and run what waits for them."""
        held, self.held = self.held, []
        for _, future in held:
            future.set_result(None)
        await turns()


def trouble() -> tuple[TroubleDisk, Ports]:
    offload = SystemOffload()
    disk = TroubleDisk(offload)
    return disk, replace(system_ports(), disk=disk, offload=offload)


async def turns(count: int = 5) -> None:
    """Let the event loop run what is ready."""
    for _ in range(count):
        await asyncio.sleep(0)
