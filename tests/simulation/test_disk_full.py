"""A full disk: writes are refused, reads go on, no partial batch stays, and writes work again with room."""

import pytest

from tailrace.broker.node import CannotStart
from tailrace.log.directory.inspect import verify
from tailrace.wire.errors import Error
from tests.simulation.stage import DATA_DIR, Stage, staged

room_tried = pytest.mark.parametrize("room_bytes", [0, 1, 30, 61, 100])


def has_only_whole_batches(stage: Stage, topic: str) -> bool:
    """Whether the partition's folder holds nothing but whole batches."""
    return verify(stage.node.ports.disk, stage.folder(topic)).problems == ()


@room_tried
@staged
async def test_produce_is_refused_reads_go_on_and_writes_resume_with_room(
    stage: Stage, room_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await stage.start()
    await stage.make_topic("t")
    await stage.produce("t", b"before")
    stage.storage.fill(room_bytes)
    for _ in range(3):
        assert (await stage.produce("t", b"x" * 200)).error_code == Error.KAFKA_STORAGE_ERROR
    assert await stage.read("t") == [b"before"]
    assert has_only_whole_batches(stage, "t")
    stage.storage.make_room()
    assert (await stage.produce("t", b"after")).base_offset == 1
    assert caplog.text.count("appends refused until") == caplog.text.count("appends resume") == 1
    stage.cut_power()
    await stage.start()
    assert await stage.read("t") == [b"before", b"after"]
    assert not stage.failed


@staged
async def test_a_refused_batch_that_needed_a_new_segment_leaves_no_gap(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t", segment_bytes=1024)
    await stage.produce("t", b"a" * 900)
    stage.storage.fill()
    for _ in range(3):
        assert (await stage.produce("t", b"b" * 900)).error_code == Error.KAFKA_STORAGE_ERROR
    stage.storage.make_room()
    assert (await stage.produce("t", b"c" * 900)).base_offset == 1
    stage.kill()
    await stage.start()
    assert await stage.read("t") == [b"a" * 900, b"c" * 900]


@staged
async def test_an_idempotent_producer_refused_for_room_goes_on_with_the_same_sequence(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t")
    number = await stage.producer_id()
    await stage.produce("t", b"0", producer=(number, 0, 0))
    stage.storage.fill(20)
    assert (await stage.produce("t", b"1", producer=(number, 0, 1))).error_code == Error.KAFKA_STORAGE_ERROR
    stage.storage.make_room()
    assert (await stage.produce("t", b"1", producer=(number, 0, 1))).base_offset == 1
    assert (await stage.produce("t", b"1", producer=(number, 0, 1))).base_offset == 1  # a duplicate now
    assert await stage.read("t") == [b"0", b"1"]


@pytest.mark.parametrize("room_bytes", [0, 50, 400, 500, 600, 700])
@staged
async def test_a_topic_created_on_a_full_disk_is_refused_or_works_once_there_is_room(
    stage: Stage, room_bytes: int
) -> None:
    """The metadata log, the vote journal or the first segment may be what does not fit."""
    await stage.start()
    stage.storage.fill(room_bytes)
    answer = await stage.make_topic("t", partitions=3)
    assert answer.error_code in (0, Error.KAFKA_STORAGE_ERROR)
    assert not stage.failed
    stage.storage.make_room()
    if answer.error_code:
        assert (await stage.make_topic("t", partitions=3)).error_code == 0
    await stage.world.until(lambda: all(one.leads for one in stage.node.hosted.of_topic("t")))
    for partition in range(3):
        assert (await stage.produce("t", b"v", partition=partition)).error_code == 0
    stage.kill()
    await stage.start()
    assert await stage.read("t", partition=2) == [b"v"]


@staged
async def test_partitions_whose_votes_do_not_fit_get_a_leader_once_there_is_room(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start()
    stage.storage.fill(2400)  # enough for the records of the topic, not for forty votes
    assert (await stage.make_topic("many", partitions=40)).error_code == 0
    refused = await stage.produce("many", b"v", partition=39)
    assert refused.error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert "votes" in caplog.text
    assert not stage.failed
    stage.storage.make_room()
    await stage.world.until(lambda: all(one.leads for one in stage.node.hosted.of_topic("many")))
    assert (await stage.produce("many", b"v", partition=39)).error_code == 0


@staged
async def test_a_checkpoint_that_does_not_fit_is_logged_and_retried(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start(log_checkpoint_interval_ms=500)
    await stage.make_topic("t")
    for number in range(20):
        await stage.produce("t", b"%d" % number)
    before = stage.files().get(f"{DATA_DIR}/checkpoint", b"")
    await stage.produce("t", b"last")
    stage.storage.fill()
    await stage.world.until(lambda: "checkpoint" in caplog.text)
    assert not stage.failed
    assert stage.files().get(f"{DATA_DIR}/checkpoint", b"") == before
    assert await stage.read("t") == [b"%d" % number for number in range(20)] + [b"last"]
    stage.storage.make_room()
    await stage.world.until(lambda: stage.files().get(f"{DATA_DIR}/checkpoint", b"") != before)
    stage.cut_power()
    await stage.start()
    assert len(await stage.read("t")) == 21


@staged
async def test_retention_that_has_no_room_for_a_new_segment_is_retried(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start(log_retention_check_interval_ms=500)
    await stage.make_topic("t", retention_ms=1000)
    await stage.produce("t", b"old")
    stage.storage.fill(new_names=False)
    await stage.world.until(lambda: "retention" in caplog.text)
    assert not stage.failed
    stage.storage.make_room()
    await stage.world.until(lambda: stage.node.hosted.find("t", 0).log.start == 1)


@staged
async def test_a_stop_on_a_full_disk_releases_its_lock_and_loses_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start()
    await stage.make_topic("t")
    await stage.produce("t", b"v")
    stage.storage.fill()
    await stage.stop()
    assert "clean" in caplog.text
    assert not stage.storage.locks
    stage.storage.make_room()
    await stage.start()
    assert await stage.read("t") == [b"v"]


@staged
async def test_a_start_on_a_full_disk_fails_with_the_reason(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t")
    await stage.produce("t", b"v")
    stage.kill()
    stage.storage.fill()
    with pytest.raises(CannotStart, match="No space left"):
        await stage.start()
    stage.kill()
    stage.storage.make_room()
    await stage.start()
    assert await stage.read("t") == [b"v"]


@staged
async def test_a_new_leader_without_room_for_its_first_batch_serves_once_there_is_room(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start(log_checkpoint_interval_ms=500)
    await stage.make_topic("t")
    await stage.make_topic("other")
    await stage.produce("t", b"0")
    await stage.world.until(lambda: f"{DATA_DIR}/checkpoint" in stage.files())
    await stage.produce("t", b"1")
    stage.kill()
    stage.storage.fill(80, below=stage.folder("t"))  # what recovery writes fits, a control batch does not
    await stage.start()
    assert "t-0: cannot write the leader-change batch" in caplog.text
    assert (await stage.fetch("t", 0)).error_code == Error.NOT_LEADER_OR_FOLLOWER  # not: the log ends at 1
    assert await stage.read("other") == []
    stage.storage.make_room()
    await stage.world.until(lambda: stage.node.hosted.find("t", 0).leads)
    assert await stage.read("t") == [b"0", b"1"]
