"""The disk port of one process: `ports.disk.Disk` in memory.

It enforces the port's rules strictly where a real disk would let a violation pass most of the time. For example, the
port keeps no descriptor of a file without unsynced writes, so a handle fails here as soon as its file was renamed or
removed and has no unsynced writes.
"""

import asyncio
import errno
from collections.abc import Callable
from typing import Final

from tailrace.ports.disk import Buffer, InUse
from tailrace.testing.simulation.clock import EPOCH_MS
from tailrace.testing.simulation.directory_tree import Folder, normalized, os_error
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.process import SimProcess
from tailrace.testing.simulation.storage import Storage
from tailrace.testing.simulation.trace import fingerprint

PAGE_BYTES: Final = 4096


class SimFile:
    def __init__(self, path: str, content: FileContent, storage: Storage, process: SimProcess) -> None:
        self._path = path
        self._content = content
        self._storage = storage
        self._process = process
        self._closed = False
        self._last_change = -1  # the serial of this handle's last change of the content
        self._tree_serial = storage.tree.next_serial  # when the path was last found to lead to this content

    @property
    def path(self) -> str:
        return self._path

    def size(self) -> int:
        return len(self._use().visible)

    def modified_ms(self) -> int:
        return EPOCH_MS + int(self._use().modified_at * 1000)

    def write(self, data: Buffer, position: int) -> None:
        content = self._change()
        copy = bytes(data)
        self._storage.trace("write", self._path, position, len(copy), fingerprint(copy))
        self._storage.write(content, self._path, copy, position)

    def read(self, position: int, size: int) -> bytes:
        content = self._use()
        self._storage.check_readable(self._path)
        return bytes(content.visible[position : position + size])

    def read_cached(self, position: int, size: int) -> Buffer | None:
        content, odds, rng = self._use(), self._storage.odds, self._storage.rng
        if position < len(content.visible):
            if self._storage.is_unreadable(self._path) or rng.random() < odds.cold_chance:
                return None
            first_page = PAGE_BYTES - position % PAGE_BYTES
            if first_page < size and rng.random() < odds.short_chance:
                size = first_page + (size - first_page) // PAGE_BYTES // 2 * PAGE_BYTES
        return memoryview(content.visible[position : position + size])

    def read_cold(self, position: int, size: int) -> "asyncio.Future[bytes]":
        content, storage, process = self._use(), self._storage, self._process
        future: asyncio.Future[bytes] = storage.loop.create_future()
        early = bytes(content.visible[position : position + size]) if storage.rng.random() < 0.5 else None

        def finish() -> None:
            if future.done() or not process.alive:
                return
            try:
                storage.check_readable(self._path)
            except OSError as error:
                future.set_exception(error)
            else:
                future.set_result(bytes(content.visible[position : position + size]) if early is None else early)

        storage.later(storage.odds.read.draw(storage.rng), finish)
        return future

    def forget_cached(self, position: int, size: int) -> None:
        self._use()

    def truncate(self, size: int) -> None:
        content = self._change()
        self._storage.trace("truncate", self._path, size)
        self._storage.truncate(content, self._path, size)

    def sync(self) -> "asyncio.Future[None]":
        content = self._use()
        self._storage.trace("sync", self._path)
        future, done = _completion(self._storage, self._process, "synced", self._path)
        self._storage.sync(content, self._path, done)
        return future

    def sync_then(self, ended: Callable[[BaseException | None], None]) -> None:
        self.sync().add_done_callback(lambda sync: ended(sync.exception()))

    def close(self) -> None:
        """Also for a process that is dead: its coroutines close their files when they are collected."""
        self._closed = True

    def _change(self) -> FileContent:
        """The content, which is about to be changed."""
        content = self._use()
        self._storage.before_change()
        self._process.check_alive()  # `before_change` may have crashed it
        self._last_change = content.next_serial
        content.modified_at = self._storage.loop.time()
        return content

    def _use(self) -> FileContent:
        """The content, unless the handle is closed, or its file was renamed or removed and has no unsynced writes."""
        self._process.check_alive()
        if self._closed:
            raise ValueError(f"{self._path} is closed")
        tree = self._storage.tree
        if self._tree_serial != tree.next_serial:
            if tree.find(self._path) is not self._content and self._content.is_clean(self._last_change):
                raise os_error(errno.ENOENT, self._path)
            self._tree_serial = tree.next_serial
        return self._content


class SimLock:
    def __init__(self, path: str, storage: Storage, process: SimProcess) -> None:
        self._path = path
        self._storage = storage
        self._process = process
        self._held = True

    def release(self) -> None:
        self._process.check_alive()
        if self._held:
            del self._storage.locks[self._path]
        self._held = False


class SimDisk:
    def __init__(self, storage: Storage, process: SimProcess) -> None:
        self._storage = storage
        self._process = process

    def open_private(self, path: str) -> SimFile:
        return self.open(path)  # nobody else is there

    def open(self, path: str) -> SimFile:
        self._process.check_alive()
        tree = self._storage.tree
        tree.entry_of(path)
        node = tree.find(path)
        if isinstance(node, Folder):
            raise os_error(errno.EISDIR, path)
        if node is None:
            self._storage.check_new_name(path)
            node = FileContent()
            self._change("create", path)
            tree.create(path, node)
        return SimFile(path, node, self._storage, self._process)

    def exists(self, path: str) -> bool:
        self._process.check_alive()
        return self._storage.tree.find(path) is not None

    def names(self, path: str) -> list[str]:
        self._process.check_alive()
        return sorted(self._storage.tree.folder(path).entries)

    def make_dir(self, path: str) -> None:
        if self._storage.tree.find(path) is None:
            self._storage.check_new_name(path)
        self._change("make_dir", path)
        self._storage.tree.make_dirs(path)

    def rename(self, old: str, new: str) -> None:
        self._change("rename", old, new)
        replaced = self._storage.tree.find(new)
        moved = self._storage.tree.find(old)
        self._storage.tree.rename(old, new)
        if isinstance(replaced, FileContent) and replaced is not moved:
            self._storage.used_bytes -= len(replaced.visible)

    def remove(self, path: str) -> None:
        self._change("remove", path)
        content = self._storage.tree.find(path)
        self._storage.tree.remove(path)
        assert isinstance(content, FileContent)
        self._storage.used_bytes -= len(content.visible)

    def remove_dir(self, path: str) -> None:
        self._change("remove_dir", path)
        size = self._storage.tree.size_below(path)
        self._storage.tree.remove_tree(path)
        self._storage.used_bytes -= size

    def remove_dir_cold(self, path: str) -> "asyncio.Future[None]":
        self.remove_dir(path)
        future, done = _completion(self._storage, self._process, "removed_dir", path)
        self._storage.later(self._storage.odds.sync.draw(self._storage.rng), lambda: done(None))
        return future

    def sync_dir(self, path: str) -> "asyncio.Future[None]":
        self._process.check_alive()
        self._storage.trace("sync_dir", path)
        future, done = _completion(self._storage, self._process, "synced_dir", path)
        self._storage.sync_dir(path, done)
        return future

    def lock(self, path: str, owner: str) -> SimLock:
        self.open(path)
        key = normalized(path)
        if key in self._storage.locks:
            raise InUse(path, self._storage.locks[key])
        self._storage.locks[key] = owner
        return SimLock(key, self._storage, self._process)

    def free_bytes(self, path: str) -> int:
        self._process.check_alive()
        if self._storage.tree.find(path) is None:
            raise os_error(errno.ENOENT, path)
        return max(0, self._storage.capacity_bytes - self._storage.used_bytes)

    def total_bytes(self, path: str) -> int:
        self._process.check_alive()
        return self._storage.capacity_bytes

    def _change(self, kind: str, *paths: str) -> None:
        self._process.check_alive()
        self._storage.before_change()
        self._process.check_alive()  # `before_change` may have crashed it
        self._storage.trace(kind, *paths)


def _completion(
    storage: Storage, process: SimProcess, kind: str, path: str
) -> tuple["asyncio.Future[None]", Callable[[OSError | None], None]]:
    """A future for the process, and the function with which the kernel completes it, unless the process died."""
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
