"""Damaged batches are detected, logged with file and position, and never served; everything else goes on."""

import pytest

from tailrace.broker.node import CannotStart
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.testing.simulation.storage import Storage
from tailrace.wire.errors import Error
from tests.simulation.stage import DATA_DIR, Stage, staged

values = [b"record %d" % number for number in range(20)]
METADATA_FOLDER = f"{DATA_DIR}/AAAAAAAAAAAAAAAAAAAAAQ-0"
# where in a batch: base offset, length, magic, checksum, delta, a record's bytes
places = pytest.mark.parametrize("place", [7, 11, 16, 20, 26, BATCH_HEADER_BYTES + 5])


async def filled(stage: Stage, **settings: object) -> str:
    """A topic with twenty batches of one record, beside another; the one segment's path."""
    await stage.start(**settings)
    await stage.make_topic("t")
    await stage.make_topic("other")
    for value in values:
        await stage.produce("t", value)
    await stage.produce("other", b"fine")
    (file,) = stage.segments("t")
    return file


def batch_at(storage: Storage, path: str, number: int) -> int:
    """The position of a batch in a segment of batches with one record each."""
    content = bytes(dict(storage.tree.files())[path].visible)
    position = 0
    for _ in range(number):
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    return position


def recorded_point(stage: Stage) -> int:
    """The recovery point of "t" in the checkpoint on disk."""
    checkpoints = load_checkpoints(stage.node.ports.disk, DATA_DIR)
    assert checkpoints is not None
    checkpoint = checkpoints.get(stage.node.hosted.find("t", 0).key)
    return 0 if checkpoint is None else checkpoint.recovery.offset


async def check_served_below(stage: Stage, bad: int) -> None:
    """Every record below the damaged batch is served, none from it on; the other topic is not affected."""
    for offset in range(bad):
        answer = await stage.fetch("t", offset, max_bytes=1)
        assert answer.error_code == 0
        assert values[offset] in bytes(answer.records)
        assert values[bad] not in bytes(answer.records)
    for offset in range(bad, len(values)):
        answer = await stage.fetch("t", offset)
        assert answer.error_code == Error.KAFKA_STORAGE_ERROR
        assert not answer.records
    assert (await stage.produce("t", b"more")).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("other", b"more")).error_code == 0
    assert b"more" in await stage.read("other")
    assert not stage.failed


@places
@staged
async def test_a_bit_flipped_while_running(stage: Stage, place: int, caplog: pytest.LogCaptureFixture) -> None:
    file = await filled(stage)
    at = batch_at(stage.storage, file, 7)
    stage.storage.flip_bit(file, at + place)
    await check_served_below(stage, 7)
    assert f"{file} at byte {at}, offset 7" in caplog.text


@places
@pytest.mark.parametrize("clean", [True, False])
@staged
async def test_a_bit_flipped_below_the_recovery_point_while_stopped(
    stage: Stage, place: int, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    file = await filled(stage, log_checkpoint_interval_ms=500)
    await stage.world.until(lambda: recorded_point(stage) == len(values))
    if clean:
        await stage.stop()
    else:
        stage.kill()
    at = batch_at(stage.storage, file, 7)
    stage.storage.flip_bit(file, at + place)
    await stage.start()
    await check_served_below(stage, 7)
    assert f"{file} at byte {at}, offset 7" in caplog.text
    assert len(stage.files()[file]) > at  # nothing was truncated


@places
@staged
async def test_a_bit_flipped_above_the_recovery_point_ends_the_log_there_and_is_logged(
    stage: Stage, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    file = await filled(stage)
    at = batch_at(stage.storage, file, 7)
    stage.kill()
    stage.storage.flip_bit(file, at + place)
    await stage.start()
    assert await stage.read("t") == values[:7]
    assert f"{file} at byte {at}" in caplog.text
    assert "truncating the log to offset 7" in caplog.text
    assert (await stage.produce("t", b"goes on")).error_code == 0
    assert await stage.read("other") == [b"fine"]


@staged
async def test_a_damaged_metadata_log_below_the_recovery_point_keeps_the_broker_from_starting(stage: Stage) -> None:
    await filled(stage)
    await stage.stop()
    (file,) = [path for path in stage.files(METADATA_FOLDER) if path.endswith(".log")]
    stage.storage.flip_bit(file, batch_at(stage.storage, file, 1) + BATCH_HEADER_BYTES + 3)
    with pytest.raises(CannotStart, match="damaged"):
        await stage.start()


@pytest.mark.parametrize("entry", range(4))
@staged
async def test_a_damaged_vote_affects_the_epoch_of_no_other_partition(
    stage: Stage, entry: int, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start()
    await stage.make_topic("t", partitions=2)
    await stage.stop()
    await stage.start()
    await stage.stop()
    stage.storage.flip_bit(f"{DATA_DIR}/votes", entry * 48 + 20)
    await stage.start()
    assert f"{DATA_DIR}/votes: skipping the entry at byte {entry * 48}: checksum mismatch" in caplog.text
    assert [one.epoch for one in stage.node.hosted.of_topic("t")] == [2, 2]


@staged
async def test_unreadable_files_are_refused_and_served_again_once_they_are_readable(stage: Stage) -> None:
    file = await filled(stage)
    stage.storage.fail_reads(file)
    assert (await stage.fetch("t", 3)).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.offsets("t", [1]))[0].error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.offsets("t", [-3]))[0].error_code == Error.KAFKA_STORAGE_ERROR
    assert await stage.read("other") == [b"fine"]
    assert not stage.failed
    stage.storage.heal_reads(file)
    assert await stage.read("t") == values
    assert (await stage.produce("t", b"more")).error_code == 0


@staged
async def test_an_unreadable_index_is_rebuilt(stage: Stage) -> None:
    await stage.start(log_segment_bytes=1024, log_index_interval_bytes=0)
    await stage.make_topic("t")
    for value in values:
        await stage.produce("t", value * 20)
    await stage.stop()
    for path in stage.files():
        if path.endswith((".index", ".timeindex")):
            stage.storage.fail_reads(path)
    await stage.start(log_retention_check_interval_ms=500, log_index_interval_bytes=0)
    assert await stage.read("t") == [value * 20 for value in values]
    found = (await stage.offsets("t", [0]))[0]
    assert (found.error_code, found.offset) == (0, 0)
    await stage.world.until(lambda: stage.world.loop.time() > 3)  # so that a retention check has run
    assert not stage.failed


@staged
async def test_a_log_that_cannot_be_opened_takes_no_other_partition_offline(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    file = await filled(stage)
    stage.kill()
    stage.storage.fail_reads(file)
    await stage.start()
    assert file in caplog.text
    assert (await stage.fetch("t", 0)).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("t", b"more")).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("other", b"more")).error_code == 0
    stage.storage.heal_reads(file)
    stage.kill()
    await stage.start()
    assert await stage.read("t") == values
