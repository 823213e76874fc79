"""Reading a partition's folder without a broker: its batches, and what `verify` reports."""

from pathlib import Path

from tailrace.log.directory.inspect import stored_batches, verify
from tailrace.ports import Disk, system_ports
from tests.unit.log.logs import on_loop, one_batch, open_log, put, segment_path, topic


async def filled(folder: Path) -> Disk:
    log = await open_log(folder, settings=topic(segment_bytes=1024))
    for number in range(30):
        put(log, one_batch([b"a%02d" % number, b"b"]), epoch=1 + number // 10)
    await log.close()
    return system_ports().disk


@on_loop
async def test_a_good_log(tmp_path: Path) -> None:
    disk = await filled(tmp_path / "p")
    report = verify(disk, str(tmp_path / "p"))
    assert (report.batches, report.records, report.start, report.end, report.problems) == (30, 60, 0, 60, ())
    assert report.bytes == sum(path.stat().st_size for path in sorted((tmp_path / "p").glob("*.log")))
    shown = list(stored_batches(disk, str(tmp_path / "p")))
    assert [batch.header.base_offset for batch in shown if batch.header is not None] == list(range(0, 60, 2))
    assert [record.value for record in shown[7].records()] == [b"a07", b"b"]


@on_loop
async def test_a_flipped_bit_is_reported_and_later_segments_are_still_checked(tmp_path: Path) -> None:
    disk = await filled(tmp_path / "p")
    path, size = segment_path(tmp_path / "p"), len(one_batch([b"a00", b"b"]))
    data = bytearray(path.read_bytes())
    data[3 * size - 1] ^= 1
    path.write_bytes(data)
    report = verify(disk, str(tmp_path / "p"))
    assert [(problem.file, problem.position) for problem in report.problems] == [(str(path), 2 * size)]
    assert "checksum" in str(report.problems[0])
    assert 2 < report.batches < 29
    assert report.end == 60


@on_loop
async def test_falling_offsets_and_epochs_and_bad_records_are_reported(tmp_path: Path) -> None:
    disk = await filled(tmp_path / "p")
    last = sorted((tmp_path / "p").glob("*.log"))[-1]
    no_records = bytearray(one_batch(base_offset=62, epoch=3))
    no_records = no_records[:61]
    no_records[8:12] = (49).to_bytes(4, "big")
    from crc32c import crc32c

    no_records[17:21] = crc32c(no_records[21:]).to_bytes(4, "big")
    extra = [one_batch(base_offset=40, epoch=3), one_batch(base_offset=60, epoch=2), no_records]
    last.write_bytes(last.read_bytes() + b"".join(map(bytes, extra)))
    reasons = [problem.reason for problem in verify(disk, str(tmp_path / "p")).problems]
    assert reasons[:2] == ["base offset 40 after offset 59", "leader epoch 2 after 3"]
    assert reasons[2].startswith("records cannot be decoded")


@on_loop
async def test_an_empty_folder(tmp_path: Path) -> None:
    report = verify(system_ports().disk, str(tmp_path))
    assert (report.segments, report.batches, report.end, report.problems) == (0, 0, 0, ())
