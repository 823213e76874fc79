"""Files, as the log needs them.

Rules that callers rely on:

- Writes are synchronous and land in the file at once, for every reader in this process; they are *durable*
  only when a `sync` that started after them has ended. A new or renamed name is durable only when a
  `sync_dir` of its folder, started after it, has ended.
- A failed write may have left a part: the caller truncates or writes over it.
- A failed `sync` says that anything written since the last good one may be lost, now or later. It is never retried.
- Positions are absolute; a file has no cursor. Nothing is memory-mapped: a read error must be an error, not a signal.
- Descriptors are the disk's affair: `open` is cheap, and a file at rest may hold none. So a file is closed before its
  name, or that of a folder above it, is changed or removed: a handle kept past that may fail with FileNotFoundError.
"""

import asyncio
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def modified_ms(self) -> int:
        """When it was written or truncated last, by the wall clock."""
        ...

    def write(self, data: Buffer, position: int) -> None:
        """Write all of `data`, or raise OSError (a full disk is OSError with ENOSPC)."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Read, waiting for the disk if need be: for start-up and tools, never on a serving loop.

        Short at the end of the file.
        """
        ...

    def read_cached(self, position: int, size: int) -> Buffer | None:
        """What the page cache holds from `position` on, up to `size`, without waiting.

        None when its first byte would need the disk.
        """
        ...

    def read_cold(self, position: int, size: int) -> "asyncio.Future[bytes]":
        """Read off the loop. Short at the end of the file."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> "asyncio.Future[None]":
        """Everything written before this call is on the disk when the future is done."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str) -> File:
        """A file to read and write, created empty when it is missing (FileNotFoundError when its folder is)."""
        ...

    def exists(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """The names in a folder, sorted; FileNotFoundError when there is no such folder."""
        ...

    def make_dir(self, path: str) -> None:
        """Make a folder and those above it; nothing happens when it is there."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces `new`."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """Remove a folder with all that is in it, waiting for the disk: for start-up."""
        ...

    def remove_dir_cold(self, path: str) -> "asyncio.Future[None]":
        """As `remove_dir`, off the loop: to free gigabytes takes its time."""
        ...

    def sync_dir(self, path: str) -> "asyncio.Future[None]": ...

    def lock(self, path: str, owner: str) -> Lock:
        """Hold a file for this process alone until released or dead. `InUse` names the owner that holds it."""
        ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...


class InUse(Exception):
    """Another process holds the lock."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(f"{path} is held by {owner or 'another process'}")
        self.path = path
        self.owner = owner


def read_file(disk: Disk, path: str) -> bytes:
    """The whole of a small file."""
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


async def write_new(disk: Disk, path: str, data: bytes) -> None:
    """Put `data` on disk beside the small file it will replace; the caller renames `….new`, and syncs the folder."""
    fresh = disk.open(path + ".new")
    try:
        fresh.truncate(0)
        fresh.write(data, 0)
        await fresh.sync()
    finally:
        fresh.close()


async def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """Put `data` in place of a small file: after a crash it holds the old or the new, whole."""
    folder, _, _ = path.rpartition("/")
    await write_new(disk, path, data)
    disk.rename(path + ".new", path)
    await disk.sync_dir(folder or ".")


async def make_lasting_dir(disk: Disk, path: str) -> None:
    """Make a folder and those above it, so that none of the new names is lost with the power."""
    fresh, folder = [], path.rstrip("/")
    while folder and not disk.exists(folder):
        fresh.append(folder)
        folder = folder.rpartition("/")[0]
    disk.make_dir(path)
    for folder in fresh:
        above = folder.rpartition("/")[0] or ("/" if folder.startswith("/") else ".")
        await disk.sync_dir(above)
