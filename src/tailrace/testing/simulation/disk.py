"""One process's way to its machine's disk: `ports.disk.Disk` in memory.

It keeps the port's rules to the letter where the real disk would only sometimes punish: a file at rest has no
descriptor, so a handle whose name was renamed or removed is useless unless it holds un-synced writes.
"""

import asyncio
import errno
from collections.abc import Callable
from typing import Final

from tailrace.ports.disk import Buffer, InUse
from tailrace.testing.simulation.clock import EPOCH_MS
from tailrace.testing.simulation.image import Image
from tailrace.testing.simulation.incarnation import Incarnation
from tailrace.testing.simulation.names import Folder, failed, normal
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.trace import fingerprint

PAGE_BYTES: Final = 4096


class SimFile:
    def __init__(self, path: str, image: Image, storage: Storage, process: Incarnation) -> None:
        self._path = path
        self._image = image
        self._storage = storage
        self._process = process
        self._closed = False
        self._last_change = -1
        self._names_seen = storage.names.next_serial

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return len(self._use().content)

    def modified_ms(self) -> int:
        return EPOCH_MS + int(self._use().modified_at * 1000)

    def write(self, data: Buffer, position: int) -> None:
        image = self._change()
        copy = bytes(data)
        self._storage.trace("write", self._path, position, len(copy), fingerprint(copy))
        self._storage.write(image, self._path, copy, position)

    def read(self, position: int, size: int) -> bytes:
        image = self._use()
        self._storage.check_readable(self._path)
        return bytes(image.content[position : position + size])

    def read_cached(self, position: int, size: int) -> Buffer | None:
        image, odds, chance = self._use(), self._storage.odds, self._storage.chance
        if position < len(image.content):
            if self._storage.is_unreadable(self._path) or chance.random() < odds.cold_chance:
                return None
            first_page = PAGE_BYTES - position % PAGE_BYTES
            if first_page < size and chance.random() < odds.short_chance:
                size = first_page + (size - first_page) // PAGE_BYTES // 2 * PAGE_BYTES
        return memoryview(image.content[position : position + size])

    def read_cold(self, position: int, size: int) -> "asyncio.Future[bytes]":
        image, storage, process = self._use(), self._storage, self._process
        future: asyncio.Future[bytes] = storage.loop.create_future()
        early = bytes(image.content[position : position + size]) if storage.chance.random() < 0.5 else None

        def ended() -> None:
            if future.done() or not process.alive:
                return
            try:
                storage.check_readable(self._path)
            except OSError as error:
                future.set_exception(error)
            else:
                future.set_result(bytes(image.content[position : position + size]) if early is None else early)

        storage.later(storage.odds.read.draw(storage.chance), ended)
        return future

    def truncate(self, size: int) -> None:
        image = self._change()
        self._storage.trace("truncate", self._path, size)
        self._storage.truncate(image, self._path, size)

    def sync(self) -> "asyncio.Future[None]":
        image = self._use()
        self._storage.trace("sync", self._path)
        future, done = _promise(self._storage, self._process, "synced", self._path)
        self._storage.sync(image, self._path, done)
        return future

    def close(self) -> None:
        self._process.check()
        self._closed = True

    def _change(self) -> Image:
        image = self._use()
        self._storage.changing()
        self._process.check()  # it may have died of it
        self._last_change = image.next_serial
        image.modified_at = self._storage.loop.time()
        return image

    def _use(self) -> Image:
        self._process.check()
        if self._closed:
            raise ValueError(f"{self._path} is closed")
        names = self._storage.names
        if self._names_seen != names.next_serial:
            if names.find(self._path) is not self._image and self._image.is_clean(self._last_change):
                raise failed(errno.ENOENT, self._path)
            self._names_seen = names.next_serial
        return self._image


class SimLock:
    def __init__(self, path: str, storage: Storage, process: Incarnation) -> None:
        self._path = path
        self._storage = storage
        self._process = process
        self._held = True

    def release(self) -> None:
        self._process.check()
        if self._held:
            del self._storage.locks[self._path]
        self._held = False


class SimDisk:
    def __init__(self, storage: Storage, process: Incarnation) -> None:
        self._storage = storage
        self._process = process

    def open(self, path: str) -> SimFile:
        self._process.check()
        names = self._storage.names
        names.place(path)
        node = names.find(path)
        if isinstance(node, Folder):
            raise failed(errno.EISDIR, path)
        if node is None:
            self._storage.check_takes_names(path)
            node = Image()
            self._change("create", path)
            names.create(path, node)
        return SimFile(path, node, self._storage, self._process)

    def exists(self, path: str) -> bool:
        self._process.check()
        return self._storage.names.find(path) is not None

    def names(self, path: str) -> list[str]:
        self._process.check()
        return sorted(self._storage.names.folder(path).entries)

    def make_dir(self, path: str) -> None:
        if self._storage.names.find(path) is None:
            self._storage.check_takes_names(path)
        self._change("make_dir", path)
        self._storage.names.make_dirs(path)

    def rename(self, old: str, new: str) -> None:
        self._change("rename", old, new)
        replaced = self._storage.names.find(new)
        moved = self._storage.names.find(old)
        self._storage.names.rename(old, new)
        if isinstance(replaced, Image) and replaced is not moved:
            self._storage.used_bytes -= len(replaced.content)

    def remove(self, path: str) -> None:
        self._change("remove", path)
        image = self._storage.names.find(path)
        self._storage.names.remove(path)
        assert isinstance(image, Image)
        self._storage.used_bytes -= len(image.content)

    def remove_dir(self, path: str) -> None:
        self._change("remove_dir", path)
        below = self._storage.names.size_below(path)
        self._storage.names.remove_tree(path)
        self._storage.used_bytes -= below

    def remove_dir_cold(self, path: str) -> "asyncio.Future[None]":
        self.remove_dir(path)
        future, done = _promise(self._storage, self._process, "removed_dir", path)
        self._storage.later(self._storage.odds.sync.draw(self._storage.chance), lambda: done(None))
        return future

    def sync_dir(self, path: str) -> "asyncio.Future[None]":
        self._process.check()
        self._storage.trace("sync_dir", path)
        future, done = _promise(self._storage, self._process, "synced_dir", path)
        self._storage.sync_dir(path, done)
        return future

    def lock(self, path: str, owner: str) -> SimLock:
        self.open(path)
        key = normal(path)
        if key in self._storage.locks:
            raise InUse(path, self._storage.locks[key])
        self._storage.locks[key] = owner
        return SimLock(key, self._storage, self._process)

    def free_bytes(self, path: str) -> int:
        self._process.check()
        if self._storage.names.find(path) is None:
            raise failed(errno.ENOENT, path)
        return max(0, self._storage.capacity_bytes - self._storage.used_bytes)

    def total_bytes(self, path: str) -> int:
        self._process.check()
        return self._storage.capacity_bytes

    def _change(self, kind: str, *paths: str) -> None:
        self._process.check()
        self._storage.changing()
        self._process.check()  # it may have died of it
        self._storage.trace(kind, *paths)


def _promise(
    storage: Storage, process: Incarnation, kind: str, path: str
) -> tuple["asyncio.Future[None]", Callable[[OSError | None], None]]:
    """A future for the process, and what the kernel calls to fulfil it; the dead hear nothing."""
    future: asyncio.Future[None] = storage.loop.create_future()

    def done(error: OSError | None) -> None:
        storage.trace(kind, path, error.errno if error else 0)
        if future.done() or not process.alive:
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    return future, done
