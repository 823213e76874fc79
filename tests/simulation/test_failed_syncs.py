"""After a failed fsync the data it covers is never acknowledged, and the fsync is never retried."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.node import CannotStart
from tailrace.wire.errors import Error
from tests.simulation.stage import DATA_DIR, Stage, staged

METADATA_FOLDER = f"{DATA_DIR}/AAAAAAAAAAAAAAAAAAAAAQ-0"


async def two_topics(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t")
    await stage.make_topic("other")
    await stage.produce("t", b"safe")
    await stage.produce("other", b"safe")


def syncs_of(stage: Stage, path: str) -> int:
    return sum(f" sync ('{path}',)" in line for line in stage.world.lines)


@staged
async def test_the_partition_goes_offline_with_a_critical_log_line_and_others_go_on(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await two_topics(stage)
    (file,) = stage.segments("t")
    stage.storage.fail_next_sync(file)
    waiting = [asyncio.ensure_future(stage.produce("t", b"lost %d" % number)) for number in range(4)]
    answers = [await one for one in waiting]
    assert [one.error_code for one in answers] == [Error.KAFKA_STORAGE_ERROR] * 4  # every write that the sync covered
    assert any(one.levelname == "CRITICAL" and "t-0: replica offline" in one.message for one in caplog.records)
    synced = syncs_of(stage, file)
    assert (await stage.produce("t", b"more")).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("other", b"more")).error_code == 0
    await asyncio.sleep(130)  # virtual: two checkpoints
    assert syncs_of(stage, file) == synced > 0  # never retried
    assert await stage.read("other") == [b"safe", b"more"]
    assert not stage.failed


@pytest.mark.parametrize("power_loss", [False, True])
@staged
async def test_a_restart_recovers_the_partition(stage: Stage, power_loss: bool) -> None:
    await two_topics(stage)
    (file,) = stage.segments("t")
    stage.storage.fail_next_sync(file)
    await stage.produce("t", b"maybe")
    stage.broker.crash(power_loss=power_loss)
    await stage.start()
    assert (await stage.read("t"))[0] == b"safe"
    assert (await stage.produce("t", b"again")).error_code == 0
    assert (await stage.read("t"))[-1] == b"again"


@staged
async def test_a_folder_that_cannot_be_synced_takes_its_partition_offline_too(stage: Stage) -> None:
    await two_topics(stage)
    await stage.make_topic("new")
    folder = stage.folder("new")
    stage.storage.fail_next_sync(folder)
    assert (await stage.produce("new", b"v")).error_code == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("t", b"v")).error_code == 0
    stage.cut_power()
    await stage.start()
    assert (await stage.produce("new", b"w")).error_code == 0
    assert (await stage.read("new"))[-1] == b"w"


@staged
async def test_a_failed_sync_fails_the_next_write_with_acks_1_not_the_first(stage: Stage) -> None:
    await two_topics(stage)
    (file,) = stage.segments("t")
    stage.storage.fail_next_sync(file)
    assert (await stage.produce("t", b"v", acks=1)).error_code == 0
    await stage.world.until(lambda: not stage.node.hosted.find("t", 0).leads)
    assert (await stage.produce("t", b"w", acks=1)).error_code != 0


@staged
async def test_a_metadata_log_that_cannot_be_synced_refuses_only_metadata_changes(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await two_topics(stage)
    (file,) = [path for path in stage.files(METADATA_FOLDER) if path.endswith(".log")]
    stage.storage.fail_next_sync(file)
    assert (await stage.make_topic("new")).error_code == Error.KAFKA_STORAGE_ERROR
    assert "__cluster_metadata: replica offline" in caplog.text
    assert (await stage.make_topic("newer")).error_code == Error.KAFKA_STORAGE_ERROR
    assert await stage.delete_topic("t") == Error.KAFKA_STORAGE_ERROR
    assert (await stage.produce("t", b"v")).error_code == 0
    assert await stage.read("t") == [b"safe", b"v"]
    assert not stage.failed
    stage.cut_power()
    await stage.start()
    assert (await stage.make_topic("newer")).error_code == 0
    assert await stage.read("t") == [b"safe", b"v"]


@staged
async def test_a_vote_journal_that_cannot_be_synced_prevents_only_new_elections(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await two_topics(stage)
    stage.storage.fail_next_sync(f"{DATA_DIR}/votes")
    assert (await stage.make_topic("new")).error_code == 0  # it is in the metadata, so it gets a leader after a restart
    assert (await stage.produce("new", b"v")).error_code == Error.NOT_LEADER_OR_FOLLOWER
    assert any(one.levelname == "CRITICAL" and "votes" in one.message for one in caplog.records)
    journal = stage.files()[f"{DATA_DIR}/votes"]
    assert (await stage.make_topic("newer")).error_code == 0
    assert stage.files()[f"{DATA_DIR}/votes"] == journal  # never written again
    assert (await stage.produce("t", b"v")).error_code == 0
    assert not stage.failed
    epoch = stage.node.hosted.find("t", 0).epoch
    stage.cut_power()
    await stage.start()
    assert (await stage.produce("new", b"v")).error_code == 0
    assert (await stage.produce("newer", b"v")).error_code == 0
    assert stage.node.hosted.find("t", 0).epoch > epoch


@pytest.mark.parametrize("name", ["votes", "checkpoint.new"])
@staged
async def test_a_failed_sync_during_a_start_fails_it_for_votes_but_not_for_the_checkpoint(
    stage: Stage, name: str
) -> None:
    await two_topics(stage)
    stage.kill()
    stage.storage.fail_next_sync(f"{DATA_DIR}/{name}")
    if name == "votes":
        with pytest.raises(CannotStart, match="Input/output error"):
            await stage.start()
        stage.kill()
    await stage.start()
    assert await stage.read("t") == [b"safe"]


@staged
async def test_index_files_that_cannot_be_synced_are_written_again(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.start(log_checkpoint_interval_ms=500, log_index_interval_bytes=0)
    await stage.make_topic("t")
    for number in range(5):
        await stage.produce("t", b"%d" % number)
    (file,) = stage.segments("t")
    stage.storage.fail_next_sync(file.replace(".log", ".index"))
    await stage.world.until(lambda: "checkpoint failed" in caplog.text)
    assert (await stage.produce("t", b"5")).error_code == 0
    await stage.world.until(lambda: _point(stage) == 6)
    stage.cut_power()
    await stage.start()
    assert await stage.read("t") == [b"%d" % number for number in range(6)]


def _point(stage: Stage) -> Any:
    point = stage.node.hosted.find("t", 0).log.recovery_point
    return None if point is None else point.offset
