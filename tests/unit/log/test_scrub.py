"""The scrub finds damage anywhere in a log, confirms it, and finds none in a sound one."""

import os
from pathlib import Path

import pytest

from tailrace.log.log import Log
from tailrace.log.scrub import PIECE_BYTES, Flaw, find_damage
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.ports.system_disk import SystemFile
from tests.unit.log.logs import on_loop, one_batch, open_log, put, topic


async def scrub(log: Log) -> tuple[Flaw | None, int]:
    """What is found, and how many bytes were checked before."""
    sizes: list[int] = []

    async def moved(count: int) -> None:
        sizes.append(count)

    return await find_damage(log, moved), sum(sizes)


def flip(log: Log, number: int, position: int) -> None:
    with open(log.segments[number].file.path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1]))


@pytest.mark.parametrize("value_bytes", [10, 3000, PIECE_BYTES - 200, 3 * PIECE_BYTES])
@on_loop
async def test_a_sound_log_is_read_to_its_end(tmp_path: Path, value_bytes: int) -> None:
    log = await open_log(tmp_path, settings=topic(segment_bytes=400_000))
    for _ in range(200 if value_bytes < PIECE_BYTES else 10):
        put(log, one_batch([os.urandom(value_bytes)]))
    assert await scrub(log) == (None, log.size_bytes)


@pytest.mark.parametrize("place", [7, 11, 16, 20, 26, BATCH_HEADER_BYTES + 5])
@pytest.mark.parametrize("number", [0, 1, -1])
@on_loop
async def test_a_flipped_bit_is_found_in_closed_segments_and_the_active_one(
    tmp_path: Path, number: int, place: int
) -> None:
    log = await open_log(tmp_path, settings=topic(segment_bytes=20_000))
    for _ in range(200):
        put(log, one_batch([os.urandom(300)]))
    flip(log, number, place)
    flaw, _ = await scrub(log)
    assert flaw is not None
    assert (flaw.segment, flaw.position, flaw.offset) == (log.segments[number], 0, log.segments[number].base)


@on_loop
async def test_a_file_that_ends_too_early_is_damage(tmp_path: Path) -> None:
    log = await open_log(tmp_path, settings=topic(segment_bytes=20_000))
    for _ in range(200):
        put(log, one_batch([os.urandom(300)]))
    os.truncate(log.segments[1].file.path, log.segments[1].size - 10)
    flaw, _ = await scrub(log)
    assert flaw is not None
    assert flaw.segment is log.segments[1]
    assert flaw.position > 0


@on_loop
async def test_what_is_good_at_the_second_read_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = await open_log(tmp_path)
    for _ in range(5):
        put(log, one_batch([b"value"]))
    flip(log, 0, BATCH_HEADER_BYTES + 5)
    monkeypatch.setattr(SystemFile, "forget_cached", lambda file, position, size: flip(log, 0, BATCH_HEADER_BYTES + 5))
    assert await scrub(log) == (None, log.size_bytes)
    assert "good at the second read" in caplog.text
