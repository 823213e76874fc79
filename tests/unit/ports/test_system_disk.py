"""The real disk: descriptors are closed and reopened without losing data or errors."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from tailrace.ports.disk import File, InUse, read_file, replace_file
from tailrace.ports.offload import THREADS_MAX, SystemOffload
from tailrace.ports.system_disk import SystemDisk, SystemFile

T = TypeVar("T")


class Gated(SystemOffload):
    """Real threads that wait for the test to open a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def thread(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return super().thread(partial(self._gated, call))

    def thread_then(self, call: Callable[[], object], ended: Callable[[BaseException | None], None]) -> None:
        super().thread_then(partial(self._gated, call), ended)

    def read(self, call: Callable[[], T]) -> "asyncio.Future[T]":
        return self.thread(call)

    def _gated(self, call: Callable[[], T]) -> T:
        assert self.gate.wait(10)
        return call()


def has_descriptor(file: File) -> bool:
    assert isinstance(file, SystemFile)
    return file._descriptor >= 0


def test_descriptors_of_idle_files_are_closed_and_reopened(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SystemDisk(SystemOffload(), descriptors_max=3)
        files = [disk.open(f"{tmp_path}/{number}") for number in range(10)]
        assert [has_descriptor(file) for file in files] == [False] * 7 + [True] * 3
        files[7].size()  # used again: no longer the oldest
        files[0].size()
        assert [number for number in range(10) if has_descriptor(files[number])] == [0, 7, 9]
        for number, file in enumerate(files):
            file.write(b"%d" % number, 0)
            await file.sync()
        assert [file.read(0, 9) for file in files] == [b"%d" % number for number in range(10)]
        assert sum(has_descriptor(file) for file in files) == 3
        disk.offload.close()

    asyncio.run(main())


def test_a_dirty_file_keeps_its_descriptor_until_its_sync_has_ended(tmp_path: Path) -> None:
    async def main() -> None:
        offload = Gated()
        disk = SystemDisk(offload, descriptors_max=1)
        dirty = disk.open(f"{tmp_path}/dirty")
        dirty.write(b"x", 0)
        others = [disk.open(f"{tmp_path}/{number}") for number in range(3)]
        assert has_descriptor(dirty)
        syncing = dirty.sync()
        others[0].size()
        assert has_descriptor(dirty)
        offload.gate.set()
        await syncing
        async with asyncio.timeout(10):
            while has_descriptor(dirty):
                await offload.thread(int)
                others[1].size()
        others[2].size()
        assert sum(map(has_descriptor, others)) == 1
        offload.close()

    asyncio.run(main())


def test_files_that_are_never_synced_get_background_syncs(tmp_path: Path) -> None:
    async def main() -> None:
        disk = SystemDisk(SystemOffload(), descriptors_max=20)
        files = [disk.open(f"{tmp_path}/{number}") for number in range(100)]
        for file in files:
            file.write(b"x", 0)
        async with asyncio.timeout(20):
            while sum(map(has_descriptor, files)) > 20:
                await disk.offload.thread(int)
        for file in files:
            assert file.read(0, 9) == b"x"
            await file.sync()
        disk.offload.close()

    asyncio.run(main())


def test_a_failed_background_sync_fails_the_next_requested_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def main() -> None:
        disk = SystemDisk(SystemOffload(), descriptors_max=1)
        dirty = disk.open(f"{tmp_path}/dirty")
        dirty.write(b"x", 0)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", fail)
            disk.open(f"{tmp_path}/other")
            async with asyncio.timeout(10):
                while disk._background_syncs:
                    await disk.offload.thread(int)
        with pytest.raises(OSError, match="Input/output"):
            await dirty.sync()
        assert has_descriptor(dirty)
        disk.offload.close()

    asyncio.run(main())


def test_large_files_are_freed_in_a_thread(tmp_path: Path) -> None:
    async def main() -> None:
        offload = Gated()
        disk = SystemDisk(offload)
        file = disk.open(f"{tmp_path}/large")
        file.write(bytes(2 << 20), 0)
        file.close()
        before = len(os.listdir("/proc/self/fd"))
        disk.remove(f"{tmp_path}/large")
        assert disk.names(str(tmp_path)) == []
        assert len(os.listdir("/proc/self/fd")) == before + 1  # until a thread closes it
        offload.gate.set()
        async with asyncio.timeout(10):
            while len(os.listdir("/proc/self/fd")) > before:
                await offload.thread(int)
        disk.make_dir(f"{tmp_path}/a/b")
        await disk.remove_dir_cold(f"{tmp_path}/a")
        assert disk.names(str(tmp_path)) == []
        offload.close()

    asyncio.run(main())


def test_reads_do_not_wait_behind_syncs(tmp_path: Path) -> None:
    async def main() -> None:
        offload = SystemOffload()
        gate = threading.Event()
        held = [offload.thread(gate.wait) for _ in range(2 * THREADS_MAX)]
        file = SystemDisk(offload).open(f"{tmp_path}/f")
        file.write(b"hello", 0)
        assert await asyncio.wait_for(file.read_cold(0, 5), 10) == b"hello"
        gate.set()
        await asyncio.gather(*held)
        offload.close()

    asyncio.run(main())


def test_a_descriptor_stays_open_after_the_caller_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        offload = Gated()
        disk = SystemDisk(offload)
        file = disk.open(f"{tmp_path}/f")
        reading = file.read_cold(0, 10)
        reading.cancel()
        file.close()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.sleep(0)  # let the callbacks of the cancelled future run
        assert has_descriptor(file)  # the thread still reads from it
        offload.gate.set()
        async with asyncio.timeout(10):
            await disk.sync_dir(str(tmp_path))
            while has_descriptor(file):
                await offload.thread(int)
        offload.close()

    asyncio.run(main())


def test_reopening_a_removed_file_is_an_error_and_creates_no_file(tmp_path: Path) -> None:
    disk = SystemDisk(SystemOffload(), descriptors_max=1)
    file = disk.open(f"{tmp_path}/f")
    disk.open(f"{tmp_path}/g")
    disk.remove(f"{tmp_path}/f")
    with pytest.raises(FileNotFoundError):
        file.size()
    assert disk.names(str(tmp_path)) == ["g"]


def test_a_closed_file_cannot_be_used(tmp_path: Path) -> None:
    file = SystemDisk(SystemOffload()).open(f"{tmp_path}/f")
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file.size()


def test_a_held_lock_is_refused_and_names_the_owner(tmp_path: Path) -> None:
    disk = SystemDisk(SystemOffload())
    lock = disk.lock(f"{tmp_path}/lock", "process 4711, a broker with a rather long name")
    with pytest.raises(InUse, match="process 4711") as caught:
        disk.lock(f"{tmp_path}/lock", "another")
    assert caught.value.owner == "process 4711, a broker with a rather long name"
    lock.release()
    lock.release()  # a second release has no effect
    disk.lock(f"{tmp_path}/lock", "another").release()
    assert read_file(disk, f"{tmp_path}/lock") == b"another"


def test_cached_reads_return_none_on_file_systems_without_nowait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SystemDisk(SystemOffload()).open(f"{tmp_path}/f")
    file.write(b"hello", 0)
    assert file.read_cached(0, 10) in (b"hello", None)

    def refuse(*arguments: object) -> int:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "preadv", refuse)
    assert file.read_cached(0, 10) is None
    assert file.read(0, 10) == b"hello"


def test_replacing_a_file_in_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    disk = SystemDisk(SystemOffload())
    asyncio.run(replace_file(disk, "small", b"new"))
    assert (read_file(disk, "small"), disk.names(".")) == (b"new", ["small"])
    disk.offload.close()
