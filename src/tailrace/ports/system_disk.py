"""The real disk: plain files, whose descriptors are kept in an LRU cache.

A file opens its descriptor at first use, and the descriptor may be closed again when more than `DESCRIPTORS_OPEN_MAX`
are open. It stays open between a write and the sync that covers it, because the kernel reports a failed write-back only
to descriptors that were open when it failed; and while a call runs in a thread. So the bound is a soft one: beyond it,
the least recently used files with unsynced writes are synced, a few at a time, and their descriptors closed. If such a
background sync fails, the next requested sync fails. Reopening a file never creates it: if its name was removed in the
meantime, that is an error, not an empty file.
"""

import asyncio
import errno
import fcntl
import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from tailrace.model.limits import DESCRIPTORS_OPEN_MAX, MiB
from tailrace.ports.disk import Buffer, File, InUse, Lock
from tailrace.ports.offload import Offload
from tailrace.ports.worker_threads import complete

NO_WAIT: Final = getattr(os, "RWF_NOWAIT", 0)
IDLE_STEPS_MAX: Final = 8  # files that are examined when a descriptor is opened: an append must not wait for more
FILE_MODE: Final = 0o644
PRIVATE_FILE_MODE: Final = 0o600
REMOVED_HERE_MAX_BYTES: Final = MiB  # larger files are freed in a thread
BACKGROUND_SYNCS_MAX: Final = 8  # at once


class SystemFile:
    def __init__(self, path: str, disk: "SystemDisk", mode: int = FILE_MODE) -> None:
        self._path = path
        self._mode = mode  # if it is created
        self._disk = disk
        self._descriptor = -1
        self._created = False
        self._writes = 0
        self._writes_synced = 0
        self._calls_in_threads = 0
        self._failure: BaseException | None = None  # of a background sync
        self._closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def idle(self) -> bool:
        """Whether the descriptor may be closed: all writes are synced, and no call runs in a thread."""
        return self._calls_in_threads == 0 and self._writes == self._writes_synced

    def size(self) -> int:
        return os.fstat(self._open()).st_size

    def modified_ms(self) -> int:
        return os.fstat(self._open()).st_mtime_ns // 1_000_000

    def write(self, data: Buffer, position: int) -> None:
        self._writes += 1
        descriptor = self._open()
        written = os.pwrite(descriptor, data, position)
        while written < len(data):
            more = os.pwrite(descriptor, memoryview(data)[written:], position + written)
            if more == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            written += more

    def read(self, position: int, size: int) -> bytes:
        return _read_fully(self._open(), position, size)

    def read_cached(self, position: int, size: int) -> Buffer | None:
        buffer = bytearray(size)
        try:
            got = os.preadv(self._open(), [buffer], position, NO_WAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:  # file systems without RWF_NOWAIT, such as tmpfs
                return None
            raise
        return memoryview(buffer)[:got]

    def read_cold(self, position: int, size: int) -> "asyncio.Future[bytes]":
        reading = self._disk.offload.read(partial(_read_fully, self._open(), position, size))
        self._calls_in_threads += 1
        reading.add_done_callback(self._thread_ended)
        # shielded: the caller may stop waiting, but the thread goes on and needs the descriptor
        return asyncio.shield(reading)

    def forget_cached(self, position: int, size: int) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._open(), position, size, os.POSIX_FADV_DONTNEED)

    def truncate(self, size: int) -> None:
        self._writes += 1
        os.ftruncate(self._open(), size)

    def sync(self) -> "asyncio.Future[None]":
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.sync_then(partial(complete, done, None))
        return done

    def sync_then(self, ended: Callable[[BaseException | None], None]) -> None:
        if self._failure is not None:
            asyncio.get_running_loop().call_soon(ended, self._failure)
        else:
            self._start_sync(self._open(), ended)

    def start_background_sync(self) -> bool:
        """Sync, so that the descriptor can be closed; False: a call is running already, or a sync failed before."""
        if self._calls_in_threads or self._failure is not None:
            return False
        self._start_sync(self._descriptor, self._background_sync_ended)
        return True

    def _background_sync_ended(self, error: BaseException | None) -> None:
        self._failure = error
        self._disk.background_sync_ended(self)

    def _start_sync(self, descriptor: int, ended: Callable[[BaseException | None], None]) -> None:
        self._calls_in_threads += 1
        self._disk.offload.thread_then(
            partial(os.fdatasync, descriptor), partial(self._sync_ended, self._writes, ended)
        )

    def _sync_ended(
        self, writes: int, ended: Callable[[BaseException | None], None], error: BaseException | None
    ) -> None:
        if error is None:
            self._writes_synced = max(self._writes_synced, writes)  # two syncs may end in any order
        self._thread_ended()
        ended(error)

    def close(self) -> None:
        self._closed = True
        if self._calls_in_threads == 0:
            self.close_descriptor()

    def close_descriptor(self) -> None:
        if self._descriptor >= 0:
            self._disk.closed(self)
            os.close(self._descriptor)
            self._descriptor = -1

    def _open(self) -> int:
        if self._closed:
            raise ValueError(f"{self._path} is closed")
        if self._descriptor < 0:
            create = 0 if self._created else os.O_CREAT
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | create, self._mode)
            self._created = True
        self._disk.used(self)
        return self._descriptor

    def _thread_ended(self, _: object = None) -> None:
        self._calls_in_threads -= 1
        if self._closed and self._calls_in_threads == 0:
            self.close_descriptor()


class SystemLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class SystemDisk:
    def __init__(self, offload: Offload, descriptors_max: int = DESCRIPTORS_OPEN_MAX) -> None:
        self.offload = offload
        self._descriptors_max = descriptors_max
        self._open: OrderedDict[SystemFile, None] = OrderedDict()  # least recently used first
        self._background_syncs = 0  # running now

    def open(self, path: str) -> File:
        file = SystemFile(path, self)
        file.size()  # a missing directory is an error now, not at the first write
        return file

    def open_private(self, path: str) -> File:
        file = SystemFile(path, self, PRIVATE_FILE_MODE)
        file.size()
        return file

    def used(self, file: SystemFile) -> None:
        if file in self._open:
            self._open.move_to_end(file)
            return
        self._open[file] = None
        if len(self._open) > self._descriptors_max:
            self._close_idle(file)

    def _close_idle(self, needed: SystemFile | None) -> None:
        """Close descriptors to get below the bound, examining only a few of the least recently used files."""
        for _ in range(IDLE_STEPS_MAX):
            if len(self._open) <= self._descriptors_max:
                return
            oldest = next(iter(self._open))
            if oldest is needed:
                return
            if oldest.idle:
                oldest.close_descriptor()
                continue
            self._open.move_to_end(oldest)
            if self._background_syncs < BACKGROUND_SYNCS_MAX and oldest.start_background_sync():
                self._background_syncs += 1

    def background_sync_ended(self, file: SystemFile) -> None:
        self._background_syncs -= 1
        if len(self._open) <= self._descriptors_max:
            return
        if file.idle:
            file.close_descriptor()
        self._close_idle(None)

    def closed(self, file: SystemFile) -> None:
        self._open.pop(file, None)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Remove a file. The space of a large file is freed in a thread, by closing its last descriptor."""
        held = -1
        if os.lstat(path).st_size > REMOVED_HERE_MAX_BYTES:
            with suppress(OSError):
                held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.remove(path)
        finally:
            if held >= 0:
                self._close_in_thread(held)

    def _close_in_thread(self, descriptor: int) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            os.close(descriptor)
        else:
            self.offload.thread(partial(os.close, descriptor))

    def remove_dir(self, path: str) -> None:
        _remove_tree(path)

    def remove_dir_cold(self, path: str) -> "asyncio.Future[None]":
        return self.offload.thread(partial(_remove_tree, path))

    def sync_dir(self, path: str) -> "asyncio.Future[None]":
        return self.offload.thread(partial(_sync_dir, path))

    def lock(self, path: str, owner: str) -> Lock:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1024, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise InUse(path, holder) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
        return SystemLock(descriptor)

    def free_bytes(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def total_bytes(self, path: str) -> int:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize


def _remove_tree(path: str) -> None:
    from shutil import rmtree  # takes 3 ms, and a start seldom removes anything

    rmtree(path)


def _read_fully(descriptor: int, position: int, size: int) -> bytes:
    data = os.pread(descriptor, size, position)
    while len(data) < size:
        more = os.pread(descriptor, size - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def _sync_dir(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
