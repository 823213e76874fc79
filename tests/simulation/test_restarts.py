"""What a restart of the broker may change, and what not. The broker is simulated, so restarts take no real time."""

from typing import Any

import pytest

from tailrace.model.ids import show_id
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.records.opened import batches
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, ResourceAsked
from tests.simulation.stage import DATA_DIR, Stage, staged

metadata_name = show_id(METADATA_TOPIC_ID)
stops = pytest.mark.parametrize("how", ["clean", "kill", "power"])


async def restart(stage: Stage, how: str, **settings: Any) -> None:
    if how == "clean":
        await stage.stop()
    else:
        stage.broker.crash(power_loss=how == "power")
    await stage.start(**settings)


def files_of_topics(stage: Stage) -> dict[str, bytes]:
    """All files but those of the metadata partition, where each start of a broker is recorded."""
    return {path: data for path, data in stage.files().items() if path.count("/") > 2 and metadata_name not in path}


async def control_batches(stage: Stage, topic: str) -> int:
    count, offset = 0, (await stage.span(topic))[0]
    while (answer := await stage.fetch(topic, offset)).records:
        for _, header in batches(answer.records):
            count += header.is_control
            offset = header.last_offset + 1
    return count


@staged
async def test_the_first_offset_of_a_fresh_topic_is_0(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t")
    assert await stage.span("t") == (0, 0)
    assert (await stage.produce("t", b"first")).base_offset == 0


@staged
async def test_an_idle_clean_restart_changes_no_offset_and_writes_to_no_topics_log(stage: Stage) -> None:
    await stage.start()
    await stage.make_topic("t", partitions=2)
    await stage.make_topic("empty")
    for _ in range(5):
        await stage.produce("t", b"v")
    await stage.stop()
    before = files_of_topics(stage)
    for _ in range(3):
        await stage.start()
        assert await stage.span("t") == (0, 5)
        assert await stage.span("empty") == (0, 0)
        await stage.stop()
    assert files_of_topics(stage) == before
    assert len(before) >= 3


@pytest.mark.parametrize("how", ["kill", "power"])
@staged
async def test_a_crash_adds_at_most_one_control_batch_to_a_partition(stage: Stage, how: str) -> None:
    await stage.start()
    await stage.make_topic("t")
    await stage.produce("t", b"v")
    for crashes in range(1, 4):
        await restart(stage, how)
        assert await control_batches(stage, "t") <= crashes
    assert await stage.read("t") == [b"v"]


@stops
@staged
async def test_the_leader_epoch_rises_at_each_start(stage: Stage, how: str) -> None:
    await stage.start()
    await stage.make_topic("t")
    epochs = [stage.node.hosted.find("t", 0).epoch]
    for _ in range(4):
        await restart(stage, how)
        epochs.append(stage.node.hosted.find("t", 0).epoch)
    assert epochs == sorted(set(epochs))


@stops
@staged
async def test_producer_ids_never_repeat(stage: Stage, how: str) -> None:
    await stage.start()
    taken = []
    for _ in range(4):
        taken += [await stage.producer_id() for _ in range(3)]
        await restart(stage, how)
    assert len(set(taken)) == len(taken) == 12


@pytest.mark.parametrize("checkpoint_ms", [100, 3_600_000])
@stops
@staged
async def test_an_idempotent_producer_goes_on_across_restarts(stage: Stage, how: str, checkpoint_ms: int) -> None:
    """Its sequences come from the producer snapshot, or from a scan of the log if the snapshot is too old."""
    await stage.start(log_checkpoint_interval_ms=checkpoint_ms)
    await stage.make_topic("t")
    number = await stage.producer_id()
    offsets = {}
    for sequence in range(6):
        offsets[sequence] = (await stage.produce("t", b"%d" % sequence, producer=(number, 0, sequence))).base_offset
        if checkpoint_ms == 100 and sequence == 3:
            log = stage.node.hosted.find("t", 0).log
            await stage.world.until(lambda log=log: log.recovery_point is not None and log.recovery_point.offset == 4)  # type: ignore[misc]
    await restart(stage, how)
    for sequence in range(1, 6):  # the last five are remembered
        again = await stage.produce("t", b"%d" % sequence, producer=(number, 0, sequence))
        assert (again.error_code, again.base_offset) == (0, offsets[sequence])
    skipped = await stage.produce("t", b"7", producer=(number, 0, 7))
    assert skipped.error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await stage.produce("t", b"6", producer=(number, 0, 6))).error_code == 0
    assert await stage.read("t") == [b"%d" % sequence for sequence in range(7)]


@pytest.mark.parametrize("how", ["kill", "power"])
@staged
async def test_a_producer_whose_batches_retention_removed_goes_on(stage: Stage, how: str) -> None:
    """The last producer snapshot may be older than the first segment that is left."""
    await stage.start(log_retention_check_interval_ms=100, log_checkpoint_interval_ms=3_600_000)
    await stage.make_topic("t", retention_bytes=0, segment_bytes=1024)
    number = await stage.producer_id()
    for sequence in range(5):
        await stage.produce("t", b"x" * 600, producer=(number, 0, sequence))
    await stage.world.until(lambda: stage.node.hosted.find("t", 0).log.start >= 4)
    await restart(stage, how)
    assert (await stage.produce("t", b"x", producer=(number, 0, 6))).error_code == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await stage.produce("t", b"x", producer=(number, 0, 5))).error_code == 0


@stops
@staged
async def test_settings_and_deleted_records_survive(stage: Stage, how: str) -> None:
    await stage.start()
    await stage.make_topic("t", retention_ms=123456)
    for _ in range(5):
        await stage.produce("t", b"v")
    trim = TopicToTrim(name="t", partitions=(PartitionToTrim(partition=0, offset=3),))
    answer = await stage.call(DeleteRecordsRequest(topics=(trim,)), 2)
    assert answer.topics[0].partitions[0].low_watermark == 3
    await restart(stage, how)
    assert (await stage.span("t"))[0] == 3
    assert (await stage.fetch("t", 2)).error_code == Error.OFFSET_OUT_OF_RANGE
    assert await stage.read("t", 3) == [b"v"] * 2
    asked = ResourceAsked(resource_type=2, resource_name="t", config_names=("retention.ms",))
    shown = await stage.call(DescribeConfigsRequest(resources=(asked,)), 4)
    assert shown.results[0].configs[0].value == "123456"


@stops
@staged
async def test_a_deleted_topic_loses_its_folder_and_a_recreated_one_starts_empty(stage: Stage, how: str) -> None:
    await stage.start()
    first = (await stage.make_topic("t")).topic_id
    await stage.produce("t", b"old")
    folder = stage.folder("t")
    assert stage.files(folder)
    assert await stage.delete_topic("t") == 0
    assert not stage.files(folder)
    await restart(stage, how)
    assert (await stage.fetch("t", 0)).error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert not any(show_id(first) in path for path in stage.files())
    second = (await stage.make_topic("t")).topic_id
    assert second != first
    assert await stage.span("t") == (0, 0)
    assert await stage.read("t") == []
    await restart(stage, how)
    assert await stage.span("t") == (0, 0)


@staged
async def test_a_topic_that_was_deleted_is_not_opened_at_the_next_start(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """Its creation is still in the metadata log, and its checkpoint on disk: its log must not look damaged."""
    await stage.start(log_checkpoint_interval_ms=100)
    for number in range(5):
        await stage.make_topic(f"t{number}")
        await stage.produce(f"t{number}", b"v")
    before = stage.files().get(f"{DATA_DIR}/checkpoint")
    await stage.world.until(lambda: stage.files().get(f"{DATA_DIR}/checkpoint") != before)
    await stage.world.until(lambda: all(one.log.recovery_point for one in stage.node.hosted.all()))
    for number in range(5):
        assert await stage.delete_topic(f"t{number}") == 0
    stage.kill()
    await stage.start()
    assert "damaged" not in caplog.text


@staged
async def test_half_a_batch_that_did_not_fit_does_not_come_back_in_a_sealed_segment(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch is written in part and truncated; then the segment is sealed, and only later segments are synced."""
    await stage.start()
    await stage.make_topic("t", segment_bytes=1024)
    await stage.produce("t", b"0" * 500)
    stage.storage.fill(40)
    assert (await stage.produce("t", b"x" * 300)).error_code == Error.KAFKA_STORAGE_ERROR
    stage.storage.make_room()
    await stage.produce("t", b"1" * 700)
    assert len(stage.segments("t")) == 2
    first = stage.segments("t")[0]
    content = dict(stage.storage.tree.files())[first]
    assert not content.pending  # so no power cut can bring the cut bytes back
    await restart(stage, "power")
    assert await stage.read("t") == [b"0" * 500, b"1" * 700]
    assert "damaged" not in caplog.text


async def _flush_metadata(stage: Stage) -> None:
    await stage.node.control.role.active.partition.log.flush()


@staged
async def test_without_fsync_a_broker_starts_whatever_was_lost(stage: Stage) -> None:
    """If the records below a DeleteRecords offset were lost, the log continues at that offset."""
    for seed in range(6):
        topic = f"t{seed}"
        await stage.start(fsync="never")
        await stage.make_topic(topic)
        for _ in range(20):
            await stage.produce(topic, b"v")
        trim = TopicToTrim(name=topic, partitions=(PartitionToTrim(partition=0, offset=15),))
        await stage.call(DeleteRecordsRequest(topics=(trim,)), 2)
        await stage.broker.run(_flush_metadata(stage))
        stage.cut_power()
        await stage.start(fsync="never")
        start, end = await stage.span(topic)
        assert 15 <= start <= end
        assert (await stage.produce(topic, b"new")).base_offset >= 15
        assert (await stage.read(topic, start))[-1] == b"new"
        stage.kill()
