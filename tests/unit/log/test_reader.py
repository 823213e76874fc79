"""Reading: whole batches, checked, below the limit, from any offset, cached or cold."""

import asyncio
import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.log import Log
from tailrace.model.faults import OffsetOutOfRange, StorageFailed
from tailrace.ports.system_disk import SystemFile
from tailrace.records.header import read_header
from tests.unit.log.logs import (
    NOW,
    cut_file,
    everything,
    filler,
    give_up_descriptors,
    on_loop,
    one_batch,
    open_log,
    put,
    read,
    segment_path,
    topic,
    trouble,
    turns,
    write_gap,
)

small = topic(segment_bytes=1024, index_interval_bytes=200)


async def filled(folder: Path, count: int = 40) -> Log:
    """Batches of two records each, over several segments."""
    log = await open_log(folder, settings=small)
    for number in range(count):
        put(log, one_batch([b"a%d" % number, b"b%d" % number]))
    return log


@on_loop
async def test_every_offset_leads_to_its_batch(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p")
    assert len(log.segments) > 2
    for offset in [*range(log.end), *reversed(range(log.end))]:
        data, following = await read(log, offset, 1)
        header = read_header(data)
        assert (header.base_offset, header.size, following) == (offset // 2 * 2, len(data), offset // 2 * 2 + 2)


@on_loop
async def test_at_most_max_bytes_but_at_least_one_batch(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p")
    size = len((await read(log, 0, 1))[0])
    for batches in (1, 2, 3):
        assert len((await read(log, 0, size * (batches + 1) - 1))[0]) == size * batches
    large = one_batch([b"x" * 500_000])
    put(log, large)
    assert bytes((await read(log, log.end - 1, 10))[0]) == bytes(large)


@on_loop
async def test_nothing_from_the_limit_on(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p")
    for limit in range(0, 30, 2):
        assert [record.offset for record in await everything(log, limit)] == list(range(limit))
    assert (await read(log, 10, limit=10)) == (b"", 10)
    assert (await read(log, 10, limit=11)) == (b"", 10)  # no part of a batch is returned
    assert (await read(log, log.end)) == (b"", log.end)


@on_loop
async def test_offsets_outside_the_log_are_out_of_range(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p")
    await log.advance_start(10)
    for offset in (-1, 9, log.end + 1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, log.end)
        with pytest.raises(OffsetOutOfRange):
            await log.read_cold(offset, 100, log.end)


@on_loop
async def test_a_cold_read_returns_the_same(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await filled(tmp_path / "p")
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True, ports=ports)
    disk.cold = True
    assert log.read(0, 100, log.end) is None
    for max_bytes in (1, 100, 1000, 1 << 20):
        data, following = await read(log, 3, max_bytes)
        disk.cold = False
        assert await read(log, 3, max_bytes) == (data, following)
        disk.cold = True
    assert len(await everything(log)) == 80


@on_loop
async def test_sealed_segments_load_their_indexes_when_first_read(tmp_path: Path) -> None:
    log = await filled(tmp_path / "p")
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert [segment.indexes is None for segment in log.segments] == [True] * (len(log.segments) - 1) + [False]
    assert log.read(0, 100, log.end) is None
    assert len((await log.read_cold(0, 100, log.end)).data) > 0
    assert log.read(0, 100, log.end) is not None


@pytest.mark.parametrize("harm", ["missing", "cut", "zeros", "wrong"])
@on_loop
async def test_a_bad_index_is_rebuilt(tmp_path: Path, harm: str) -> None:
    log = await filled(tmp_path / "p")
    point = await log.close()
    for path in [*(tmp_path / "p").glob("*.index"), *(tmp_path / "p").glob("*.timeindex")]:
        data = path.read_bytes()
        path.write_bytes({"missing": b"", "cut": data[:-3], "zeros": bytes(len(data)), "wrong": data[::-1]}[harm])
        if harm == "missing":
            path.unlink()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    assert log.damage is None
    assert [record.offset for record in await everything(log)] == list(range(80))
    for offset in range(80):
        assert read_header((await read(log, offset, 1))[0]).base_offset == offset // 2 * 2


@pytest.mark.parametrize("cold", [False, True])
@on_loop
async def test_corrupt_bytes_are_never_served(tmp_path: Path, caplog: pytest.LogCaptureFixture, cold: bool) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", ports=ports)
    for number in range(5):
        put(log, one_batch([b"value %d" % number]))
    disk.cold = cold
    path = tmp_path / "p" / f"{0:020d}.log"
    size = len(one_batch([b"value 0"]))
    data = bytearray(path.read_bytes())
    data[3 * size - 1] ^= 1
    path.write_bytes(data)
    got, following = await read(log, 0)
    assert (len(got), following) == (2 * size, 2)
    with caplog.at_level(logging.ERROR), pytest.raises(StorageFailed, match=rf"{path} at byte {2 * size}, offset 2"):
        await read(log, 2)
    with pytest.raises(StorageFailed):
        await read(log, 3)
    with pytest.raises(StorageFailed, match="damaged"):
        put(log)
    assert log.damage is not None
    assert (log.damage.position, log.damage.offset) == (2 * size, 2)
    assert [record.offset for record in await everything(log, 2)] == [0, 1]


@on_loop
async def test_any_flipped_bit_of_a_header_is_detected_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "p" / f"{0:020d}.log"
    log = await open_log(tmp_path / "p")
    for number in range(3):
        put(log, one_batch([b"value %d" % number]))
    good = path.read_bytes()
    size = len(good) // 3
    unseen: dict[int, None] = {}
    for at in range(size, size + 61):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            path.write_bytes(bad)
            log.damage, log.refusal = None, None
            try:
                got, _ = await read(log, 0)
                assert bytes(got) == good[: len(got)] or 12 <= at - size < 16
                if len(got) > size:
                    unseen[at - size] = None
            except StorageFailed:
                pass
    assert list(unseen) == [12, 13, 14, 15]  # the leader epoch: neither a checksum nor a neighbour covers it


@on_loop
async def test_a_file_truncated_by_another_process_is_damage(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    for _ in range(3):
        put(log)
    cut_file(segment_path(tmp_path / "p"), len(one_batch()) + 20)
    assert len((await read(log, 0))[0]) == len(one_batch())
    with pytest.raises(StorageFailed, match="damaged"):
        await read(log, 1)


@on_loop
async def test_an_empty_batch_is_read_as_any_other(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    for offset in (0, 10, 20, 30):
        log.append_as_is(one_batch([b"x" * 600], base_offset=offset, epoch=1), NOW)
        log.append_as_is(filler(offset + 1, offset + 9), NOW)
    assert len(log.segments) > 2
    for offset, found in ((0, 0), (1, 1), (9, 1), (10, 10), (29, 21), (39, 31)):
        assert read_header((await read(log, offset))[0]).base_offset == found
    assert [record.offset for record in await everything(log)] == [0, 10, 20, 30]


@on_loop
async def test_a_gap_of_an_earlier_release_is_stepped_over(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log)
    await log.close()
    with segment_path(tmp_path / "p").open("ab") as file:
        file.write(one_batch(base_offset=10, epoch=1))
    write_gap(tmp_path / "p", 1, 10)
    log = await open_log(tmp_path / "p")
    for offset, found in ((0, 0), (1, 10), (10, 10)):
        assert read_header((await read(log, offset, 1))[0]).base_offset == found


@on_loop
async def test_a_segment_removed_while_it_is_read(tmp_path: Path) -> None:
    disk, ports = trouble()
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    for number in range(40):
        put(log, one_batch([b"a%d" % number]))
    await log.checkpoint()
    disk.cold = True
    reading = asyncio.ensure_future(log.read_cold(0, 100, log.end))
    await turns(1)  # the read waits for the disk now
    assert not reading.done()
    await log.advance_start(log.end)
    with pytest.raises(OffsetOutOfRange):
        await reading
    assert len(list((tmp_path / "p").glob(f"{0:020d}*"))) == 0


@on_loop
async def test_a_missing_segment_is_damage_not_a_gap(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = await filled(tmp_path / "p")
    lost, after = log.segments[2].base, log.segments[3].base
    await log.close()
    segment_path(tmp_path / "p", lost).unlink()
    log = await open_log(tmp_path / "p", settings=small, recovery=log.recovery_point, clean=True)
    assert (await read(log, lost - 2, 1))[1] == lost
    with pytest.raises(StorageFailed, match=f"the segment that holds offset {lost} is missing"):
        await read(log, lost, 1)
    assert log.damage is not None
    assert log.damage.offset == lost
    with pytest.raises(StorageFailed):
        await read(log, after, 1)


@pytest.mark.parametrize("cold", [False, True])
@on_loop
async def test_a_wrong_index_is_rebuilt_before_good_bytes_are_reported_as_damage(tmp_path: Path, cold: bool) -> None:
    disk, ports = trouble()
    disk.cold = cold
    log = await open_log(tmp_path / "p", settings=small, ports=ports)
    for number in range(40):
        put(log, one_batch([b"a%d" % number, b"b%d" % number]))
    for segment in log.segments:
        assert segment.indexes is not None
        for entry in range(len(segment.indexes.offsets)):
            segment.indexes.offsets.positions[entry] += 3
    for offset in reversed(range(80)):
        assert (await read(log, offset, 1))[1] == offset // 2 * 2 + 2
    assert (log.damage, log.refusal) == (None, None)
    assert put(log).base_offset == 80


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@on_loop
async def test_a_bit_flipped_in_an_index_file_harms_nothing(tmp_path: Path, suffix: str) -> None:
    log = await open_log(tmp_path / "p", settings=small)
    for number in range(40):
        put(log, one_batch([b"v"], timestamps=[NOW + number]))
    point = await log.close()
    path = tmp_path / "p" / f"{0:020d}.{suffix}"
    data = path.read_bytes()
    last = log.segments[1].base - 1
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 2]) + data[at + 1 :])
        log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
        assert await log.segments[0].max_timestamp() == NOW + last
        for offset in range(last):
            assert (await read(log, offset, 1))[1] == offset + 1
        assert log.damage is None
        give_up_descriptors()


@on_loop
async def test_without_descriptors_a_read_is_refused_and_works_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await filled(tmp_path / "p")
    point = await log.close()
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    give_up_descriptors()

    def refuse(*arguments: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        for lookup in (log.read_cold(0, 100, log.end), log.offset_for_time(NOW, log.end), log.max_timestamp(log.end)):
            with pytest.raises(StorageFailed):
                await lookup
    assert log.damage is None
    assert [record.offset for record in await everything(log)] == list(range(80))
    log = await open_log(tmp_path / "p", settings=small, recovery=point, clean=True)
    await log.close()
    with pytest.raises(StorageFailed):
        await read(log, 79)


@pytest.mark.parametrize("cold", [False, True])
@on_loop
async def test_a_huge_index_interval_does_not_make_reads_huge(
    tmp_path: Path, cold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, ports = trouble()
    disk.cold = cold
    log = await open_log(tmp_path / "p", settings=topic(index_interval_bytes=2**31 - 1), ports=ports)
    for number in range(60):
        put(log, one_batch([b"%2d" % number * 5_000]))
    asked = []

    def spied(real: Callable[[SystemFile, int, int], Any]) -> Callable[[SystemFile, int, int], Any]:
        def spy(file: SystemFile, position: int, size: int) -> Any:
            asked.append(size)
            return real(file, position, size)

        return spy

    for name in ("read_cold", "read_cached"):
        monkeypatch.setattr(SystemFile, name, spied(getattr(SystemFile, name)))
    for offset in (59, 3, 58, 0):
        log.segments[0].hint = (0, 0)
        data, following = await read(log, offset, 100)
        assert (read_header(data).base_offset, following) == (offset, offset + 1)
    assert max(asked) < 100_000
