"""The tombstone horizon: durable, never falling, gone with the log; an unreadable one is damage."""

from pathlib import Path

from tailrace.log.file_names import HORIZON_NAME
from tests.unit.log.logs import on_loop, open_log


@on_loop
async def test_the_horizon_survives_a_crash_and_never_falls(tmp_path: Path) -> None:
    log = await open_log(tmp_path)
    assert log.horizon == 0
    await log.raise_horizon(7)
    await log.raise_horizon(5)
    assert log.horizon == 7
    assert (await open_log(tmp_path)).horizon == 7  # the first was not closed


@on_loop
async def test_a_log_that_starts_over_has_no_horizon(tmp_path: Path) -> None:
    log = await open_log(tmp_path)
    await log.raise_horizon(7)
    await log.start_over()
    assert log.horizon == 0
    assert (await open_log(tmp_path)).horizon == 0


@on_loop
async def test_an_unreadable_horizon_is_damage(tmp_path: Path) -> None:
    log = await open_log(tmp_path)
    await log.raise_horizon(7)
    path = tmp_path / HORIZON_NAME
    path.write_bytes(path.read_bytes().replace(b"7", b"9", 1))
    log = await open_log(tmp_path)
    assert log.damage is not None
    assert log.damage.file.endswith(HORIZON_NAME)
    assert log.refusal is not None
