"""What a simulated disk keeps and loses in crashes and power cuts, and its faults."""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tailrace.ports.disk import Disk, InUse, replace_file
from tailrace.testing.simulation import Machine, Odds, World

T = TypeVar("T")


def on_machine(scenario: Callable[[Machine], Coroutine[Any, Any, T]], seed: int = 1) -> T:
    with World(seed) as world:
        return world.run(scenario(world.machine("a")))


def on_machines(scenario: Callable[[Machine], Coroutine[Any, Any, T]], seeds: int = 30) -> list[T]:
    return [on_machine(scenario, seed) for seed in range(seeds)]


def reboot(machine: Machine, *, power_loss: bool) -> Disk:
    machine.crash(power_loss=power_loss)
    return machine.boot().disk


def test_kill_9_loses_nothing_and_releases_locks() -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        disk.make_dir("/data")
        disk.open("/data/f").write(b"hello", 0)
        disk.lock("/data/lock", "a#1")
        with pytest.raises(InUse, match="a#1"):
            disk.lock("data/lock", "a#2")
        disk = reboot(machine, power_loss=False)
        assert disk.open("/data/f").read(0, 10) == b"hello"
        disk.lock("/data/lock", "a#3").release()
        disk.lock("/data/lock", "a#3")

    on_machine(scenario)


def test_a_files_modification_time_is_that_of_its_last_change_after_a_crash_too() -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        file = disk.open("/f")
        file.write(b"hello", 0)
        written = file.modified_ms()
        await asyncio.sleep(2)
        file.read(0, 5)
        assert file.modified_ms() == written
        file.truncate(3)
        assert file.modified_ms() == written + 2000
        assert reboot(machine, power_loss=False).open("/f").modified_ms() == written + 2000

    on_machine(scenario)


def test_a_synced_file_whose_folder_is_not_synced_may_be_lost() -> None:
    async def scenario(machine: Machine) -> bool:
        disk = machine.boot().disk
        file = disk.open("/f")
        file.write(b"hello", 0)
        await file.sync()
        disk = reboot(machine, power_loss=True)
        if disk.exists("/f"):
            assert disk.open("/f").read(0, 10) == b"hello"
        return disk.exists("/f")

    assert set(on_machines(scenario)) == {True, False}


def test_a_folder_that_is_not_durable_loses_its_synced_files() -> None:
    async def scenario(machine: Machine) -> bool:
        disk = machine.boot().disk
        disk.make_dir("/data/topic")
        file = disk.open("/data/topic/f")
        file.write(b"hello", 0)
        await file.sync()
        await disk.sync_dir("/data/topic")
        await disk.sync_dir("/data")
        return reboot(machine, power_loss=True).exists("/data/topic/f")

    assert set(on_machines(scenario)) == {True, False}  # the root was not synced


def test_a_sync_covers_only_what_was_written_before_it_started() -> None:
    async def scenario(machine: Machine) -> bool:
        disk = machine.boot().disk
        file = disk.open("/f")
        await disk.sync_dir("/")
        file.write(b"before", 0)
        started = file.sync()
        file.write(b"after", 6)
        await started
        after = reboot(machine, power_loss=True).open("/f").read(0, 100)
        assert after[:6] == b"before"
        return after == b"beforeafter"

    assert set(on_machines(scenario)) == {True, False}


def test_a_power_cut_during_a_sync_may_lose_anything_it_covers() -> None:
    async def scenario(machine: Machine) -> int:
        disk = machine.boot().disk
        file = disk.open("/f")
        await disk.sync_dir("/")
        file.write(b"x" * 10_000, 0)
        file.sync()
        disk = reboot(machine, power_loss=True)
        await asyncio.sleep(1)  # the sync of the previous process must have no effect on this one
        return disk.open("/f").size()

    sizes = on_machines(scenario, 40)
    assert 0 in sizes
    assert 10_000 in sizes
    assert any(0 < size < 10_000 for size in sizes)


def test_torn_writes_leave_holes_zeros_and_garbage_but_never_touch_synced_bytes() -> None:
    async def scenario(machine: Machine) -> tuple[bool, str]:
        disk = machine.boot().disk
        file = disk.open("/f")
        await disk.sync_dir("/")
        file.write(b"s" * 700, 0)
        await file.sync()
        file.write(b"n" * 3000, 700)
        after = reboot(machine, power_loss=True).open("/f").read(0, 10_000)
        assert after[:700] == b"s" * 700
        rest = after[700:]
        whole = rest == b"n" * len(rest)
        odd = any(byte not in b"n\0" for byte in rest)
        return len(rest) == 3000, "whole" if whole else "garbage" if odd else "zeros"

    shapes = set(on_machines(scenario, 150))
    assert {(True, "whole"), (False, "whole"), (True, "garbage"), (True, "zeros")} <= shapes


@pytest.mark.parametrize("seed", range(20))
def test_replacing_a_file_leaves_the_old_or_the_new_whole(seed: int) -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        await replace_file(disk, "/f", b"old")
        replacing = machine.spawn(replace_file(disk, "/f", b"new" * 1000))
        await asyncio.sleep(machine.storage.rng.uniform(0, 0.01))
        done = replacing.done()
        after = reboot(machine, power_loss=True).open("/f").read(0, 10_000)
        assert after == b"new" * 1000 or (after == b"old" and not done)

    on_machine(scenario, seed)


def test_a_rename_to_another_folder_never_loses_the_file() -> None:
    async def scenario(machine: Machine) -> list[str]:
        disk = machine.boot().disk
        disk.make_dir("/a")
        disk.make_dir("/b")
        file = disk.open("/a/f")
        file.write(b"precious", 0)
        await file.sync()
        file.close()
        for folder in ("/", "/a", "/b"):
            await disk.sync_dir(folder)
        disk.rename("/a/f", "/b/f")
        disk.open("/a/f").write(b"another", 0)
        disk = reboot(machine, power_loss=True)
        return [path for path in ("/a/f", "/b/f") if _holds(disk, path, b"precious")]

    places = on_machines(scenario, 60)
    assert {len(found) for found in places} == {1}
    assert {found[0] for found in places} == {"/a/f", "/b/f"}


def _holds(disk: Disk, path: str, data: bytes) -> bool:
    return disk.exists(path) and disk.open(path).read(0, 100) == data


@pytest.mark.parametrize("seed", range(60))
def test_a_power_cut_loses_nothing_that_was_synced(seed: int) -> None:
    """Concurrent writes, file syncs and folder syncs; the power cut comes at a random time."""
    rng = random.Random(seed)
    synced: dict[str, bytes] = {}  # what each file must begin with
    named: list[str] = []

    async def appender(disk: Disk, path: str) -> None:
        file = disk.open(path)
        written = b""
        while True:
            for _ in range(rng.randrange(4)):
                data = rng.randbytes(rng.randrange(1, 2000))
                file.write(data, len(written))
                written += data
            covered = written
            syncing = file.sync()
            data = rng.randbytes(100)
            file.write(data, len(written))
            written += data
            await syncing
            synced[path] = covered
            if path not in named:
                await disk.sync_dir("/data")
                named.append(path)

    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        disk.make_dir("/data")
        await disk.sync_dir("/")
        for number in range(3):
            machine.spawn(appender(disk, f"/data/{number}"))
        await asyncio.sleep(rng.uniform(0, 0.1))
        disk = reboot(machine, power_loss=True)
        for path in named:
            assert disk.exists(path)
            file = disk.open(path)
            assert file.read(0, len(synced[path])) == synced[path]

    on_machine(scenario, seed)


def test_a_full_disk_keeps_the_part_that_fits_and_takes_more_when_there_is_room() -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        file = disk.open("/f")
        file.write(b"12345", 0)
        machine.storage.fill(3)
        assert disk.free_bytes("/") == 3
        with pytest.raises(OSError, match="space") as caught:
            file.write(b"abcdef", 5)
        assert caught.value.errno == errno.ENOSPC
        assert file.read(0, 100) == b"12345abc"
        file.write(b"54321", 0)  # no more room is needed
        file.truncate(5)
        assert disk.free_bytes("/") == 3
        machine.storage.make_room()
        file.write(b"abcdef", 5)

    on_machine(scenario)


def test_changes_lost_by_a_failed_sync_are_not_saved_by_a_later_sync() -> None:
    async def scenario(machine: Machine) -> bytes:
        disk = machine.boot().disk
        file = disk.open("/f")
        await disk.sync_dir("/")
        file.write(b"failed", 0)
        machine.storage.fail_next_sync("/f")
        with pytest.raises(OSError, match="Input/output"):
            await file.sync()
        assert file.read(0, 100) == b"failed"
        file.write(b"later", 6)
        await file.sync()
        after = reboot(machine, power_loss=True).open("/f").read(0, 100)
        assert after[6:] == b"later"
        return bytes(after[:6])

    assert set(on_machines(scenario, 20)) == {b"failed", bytes(6)}


def test_a_flipped_bit_stays_flipped() -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        file = disk.open("/f")
        await disk.sync_dir("/")
        file.write(bytes(100), 0)
        await file.sync()
        assert machine.storage.flip_bit("/f", 17) == 17
        anywhere = machine.storage.flip_bit("/f")
        disk = reboot(machine, power_loss=True)
        changed = [at for at, byte in enumerate(disk.open("/f").read(0, 100)) if byte]
        assert changed in ([17], sorted({17, anywhere}))

    on_machine(scenario)


def test_an_unreadable_file_fails_every_kind_of_read() -> None:
    async def scenario(machine: Machine) -> None:
        file = machine.boot().disk.open("/f")
        file.write(b"hello", 0)
        machine.storage.fail_reads("/f")
        assert file.read_cached(0, 5) is None
        with pytest.raises(OSError, match="Input/output"):
            file.read(0, 5)
        with pytest.raises(OSError, match="Input/output"):
            await file.read_cold(0, 5)
        machine.storage.heal_reads("/f")
        assert await file.read_cold(0, 5) == b"hello"

    on_machine(scenario)


def test_cached_reads_are_whole_short_or_cold() -> None:
    async def scenario(machine: Machine) -> None:
        file = machine.boot().disk.open("/f")
        data = random.Random(1).randbytes(20_000)
        file.write(data, 0)
        sizes = set()
        for _ in range(500):
            got = file.read_cached(100, 12_000)
            sizes.add(None if got is None else len(got))
            assert got is None or got == data[100 : 100 + len(got)]
        assert {None, 12_000} < sizes
        at_end = [file.read_cached(20_000, 10) for _ in range(100)]
        assert all(got == b"" for got in at_end)  # a read at the end of the file is never cold

    on_machine(scenario)


def test_a_handle_without_unsynced_writes_fails_after_a_rename() -> None:
    async def scenario(machine: Machine) -> None:
        disk = machine.boot().disk
        file = disk.open("/f")
        file.write(b"hello", 0)
        disk.rename("/f", "/g")
        assert file.size() == 5  # it has un-synced bytes, so a descriptor
        await file.sync()
        disk.open("/f")
        with pytest.raises(FileNotFoundError):
            file.size()
        file.close()
        with pytest.raises(ValueError, match="closed"):
            file.read(0, 1)

    on_machine(scenario)


def test_syncs_take_time_and_a_few_take_long() -> None:
    async def scenario(machine: Machine) -> None:
        file = machine.boot().disk.open("/f")
        loop = machine.storage.loop
        times = []
        for _ in range(400):
            began = loop.time()
            await file.sync()
            times.append(loop.time() - began)
        usual = Odds().sync.high_seconds
        assert 0 < min(times) < usual < max(times)

    on_machine(scenario)
