"""The disk: files and directories, as the log needs them.

Rules that callers rely on:

- Writes are synchronous and visible to every reader in this process at once. They are *durable* only when a `sync` that
  started after them has ended. A created or renamed file name is durable only when a `sync_dir` of its directory, which
  started after it, has ended.
- A failed write may have written a part of the data: the caller truncates or overwrites it.
- After a failed `sync`, anything written since the last successful one may be lost, now or later. It is never retried.
- Positions are absolute; a file has no cursor. Nothing is memory-mapped: a read error must be an error, not a signal.
- The disk manages file descriptors: `open` is cheap, and an idle file may have none. So a file is closed before it, or
  a directory above it, is renamed or removed: a handle used after that may fail with FileNotFoundError.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class File(Protocol):
    @property
    def path(self) -> str: ...

    def size(self) -> int: ...

    def modified_ms(self) -> int:
        """When the file was last written or truncated, by the wall clock."""
        ...

    def write(self, data: Buffer, position: int) -> None:
        """Write all of `data`, or raise OSError (a full disk is OSError with ENOSPC)."""
        ...

    def read(self, position: int, size: int) -> bytes:
        """Read, waiting for the disk if necessary: for start-up and tools, never on the event loop of a serving broker.

        Shorter than `size` at the end of the file.
        """
        ...

    def read_cached(self, position: int, size: int) -> Buffer | None:
        """The bytes from `position` on that are in the page cache, at most `size`, without waiting for the disk.

        None if the first byte is not cached.
        """
        ...

    def read_cold(self, position: int, size: int) -> "asyncio.Future[bytes]":
        """Read in a thread. Shorter than `size` at the end of the file."""
        ...

    def forget_cached(self, position: int, size: int) -> None:
        """Let the next read of these bytes come from the disk; a hint. Bytes that are not on disk yet stay cached."""
        ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> "asyncio.Future[None]":
        """Sync: when the future is done, everything written before this call is on disk."""
        ...

    def sync_then(self, ended: Callable[[BaseException | None], None]) -> None:
        """As `sync`; then the loop calls `ended` with the error or None, a turn sooner than a future's callbacks."""
        ...

    def close(self) -> None: ...


class Lock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str) -> File:
        """Open a file to read and write; it is created if missing (FileNotFoundError if its directory is missing)."""
        ...

    def open_private(self, path: str) -> File:
        """As `open`; if the file is created, only its owner may read and write it."""
        ...

    def exists(self, path: str) -> bool: ...

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; FileNotFoundError if it does not exist."""
        ...

    def make_dir(self, path: str) -> None:
        """Create a directory and its parents, unless they exist."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Rename atomically; an existing `new` is replaced."""
        ...

    def remove(self, path: str) -> None: ...

    def remove_dir(self, path: str) -> None:
        """Remove a directory and its content, waiting for the disk: for start-up."""
        ...

    def remove_dir_cold(self, path: str) -> "asyncio.Future[None]":
        """As `remove_dir`, in a thread: freeing gigabytes takes time."""
        ...

    def sync_dir(self, path: str) -> "asyncio.Future[None]": ...

    def lock(self, path: str, owner: str) -> Lock:
        """Lock a file for this process until `release` or the end of the process. `InUse` has the current owner."""
        ...

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int: ...


class InUse(Exception):
    """Another process has the lock."""

    def __init__(self, path: str, owner: str) -> None:
        super().__init__(f"{path} is locked by {owner or 'another process'}")
        self.path = path
        self.owner = owner


def read_file(disk: Disk, path: str) -> bytes:
    """The content of a small file."""
    file = disk.open(path)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


async def write_new(disk: Disk, path: str, data: bytes) -> None:
    """Write and sync `path`.new, which will replace a small file; the caller renames it and syncs the directory."""
    fresh = disk.open(path + ".new")
    try:
        fresh.truncate(0)
        fresh.write(data, 0)
        await fresh.sync()
    finally:
        fresh.close()


async def replace_file(disk: Disk, path: str, data: bytes) -> None:
    """Replace a small file atomically: after a crash it has either the old or the new content."""
    folder, _, _ = path.rpartition("/")
    await write_new(disk, path, data)
    disk.rename(path + ".new", path)
    await disk.sync_dir(folder or ".")


async def make_lasting_dir(disk: Disk, path: str) -> None:
    """Create a directory and its parents durably: no new name is lost in a power failure."""
    created, folder = [], path.rstrip("/")
    while folder and not disk.exists(folder):
        created.append(folder)
        folder = folder.rpartition("/")[0]
    disk.make_dir(path)
    for folder in created:
        parent = folder.rpartition("/")[0] or ("/" if folder.startswith("/") else ".")
        await disk.sync_dir(parent)
