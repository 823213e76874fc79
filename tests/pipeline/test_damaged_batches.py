"""Batches that are not what was written: named, or set aside with a report; and healed when a second look is enough."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from crc32c import crc32c

from tailrace.client.visible_batches import select_visible
from tailrace.model.limits import MiB
from tailrace.pipeline import archive, audit, history
from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import PipelineFailed, RecordsDamaged
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.damaged import Damaged, decode_response, raise_damaged
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.pipeline.source.options import read_options
from tailrace.pipeline.source.task import ReadTask
from tailrace.records.build import build_batch, seal_batch
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.header import CHECKED_FROM, CRC_AT
from tailrace.testing import Broker
from tests.pipeline.damaging_proxy import damaging, flipping
from tests.pipeline.topics import make_topic, numbered, write, write_bytes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Of the second batch, from its first value back: where its head has base offset, length, epoch, magic and so on.
VALUE_AT = 72
BASE_OFFSET_AT, LENGTH_AT, LEADER_EPOCH_AT, MAGIC_AT, ATTRIBUTES_AT = 0, 8, 12, 16, 21


def three_batches(cluster: Cluster, topic: str) -> None:
    """Ten records each; the values of the second are found by their mark."""
    make_topic(cluster, topic)
    for number in range(3):
        write(cluster, topic, numbered(10, 100 * number))


def read(bootstrap: str, topic: str, quarantine: str = "", start: int = 0, end: int = 30) -> list[int]:
    """The offsets that a task of the source reads."""
    task = ReadTask(
        access=Access(bootstrap=bootstrap), columns=("offset",), committed=True, headers=False, fail_on_data_loss=True,
        fetch_bytes=1 << 20, quarantine=quarantine,
    )  # fmt: skip
    wanted = OffsetRange(partition=TopicPartition(topic, 0), start=start, end=end)
    return [offset for batch in task.rows(wanted) for offset in batch.column("offset").to_pylist()]


def test_damage_on_the_way_is_healed_by_a_second_look(broker: Broker, cluster: Cluster, topic: str) -> None:
    three_batches(cluster, topic)
    with damaging(broker.bootstrap, flipping(b"value 105", times=1)) as bootstrap:
        assert read(bootstrap, topic) == list(range(30))


def test_damage_that_stays_is_named(broker: Broker, cluster: Cluster, topic: str) -> None:
    three_batches(cluster, topic)
    said = rf"offsets 10…19 of {topic}-0 cannot be read: .*does not fit its checksum.*corruptBatches"
    with (
        damaging(broker.bootstrap, flipping(b"value 105")) as bootstrap,
        pytest.raises(RecordsDamaged, match=said),
    ):
        read(bootstrap, topic)


@pytest.mark.parametrize("start", [0, 13])
def test_damage_is_set_aside_with_a_report(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, start: int
) -> None:
    three_batches(cluster, topic)
    with damaging(broker.bootstrap, flipping(b"value 105")) as bootstrap:
        wanted = [*range(10), *range(20, 30)]
        assert read(bootstrap, topic, str(tmp_path), start) == [offset for offset in wanted if offset >= start]
    (report,) = (json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    assert (report["topic"], report["partition"], report["first"], report["last"]) == (topic, 0, 10, 19)
    assert len((tmp_path / report["file"]).read_bytes()) == report["bytes"]


@pytest.mark.parametrize("at", [*range(LENGTH_AT - 1), *range(LENGTH_AT, VALUE_AT, 3)])
def test_whatever_is_hit_of_a_head(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, at: int) -> None:
    """What lies before and behind the batch is read, once; and the batch, too, where nobody needs what was hit."""
    three_batches(cluster, topic)
    with damaging(broker.bootstrap, flipping(b"value 100", at=at - VALUE_AT)) as bootstrap:
        found = read(bootstrap, topic, str(tmp_path))
    is_harmless = LEADER_EPOCH_AT <= at < MAGIC_AT
    assert found == (list(range(30)) if is_harmless else [*range(10), *range(20, 30)])


def garbled(batch: bytes) -> bytes:
    """A batch whose checksum fits, and whose records make no sense."""
    raw = bytearray(batch)
    raw[61] ^= 0x40  # the length of the first record
    struct.pack_into(">I", raw, CRC_AT, crc32c(raw[CHECKED_FROM:]))
    return bytes(raw)


def test_what_was_written_as_nonsense(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(10))
    write_bytes(cluster, topic, garbled(bytes(build_batch(numbered(10, 10)))))
    write(cluster, topic, numbered(10, 20))
    with pytest.raises(RecordsDamaged, match=f"offsets 10…19 of {topic}-0 cannot be read"):
        read(broker.bootstrap, topic)
    assert read(broker.bootstrap, topic, str(tmp_path)) == [*range(10), *range(20, 30)]
    done = archive_range(
        cluster,
        OffsetRange(partition=TopicPartition(topic, 0), start=5, end=25),
        tmp_path / "h",
        quarantine=tmp_path / "q",
    )
    assert [(gap.first, gap.last, gap.reason) for gap in done.gaps] == [(10, 19, "quarantined")]
    assert done.is_whole


def sealed_again(batch: bytearray) -> bytes:
    struct.pack_into(">I", batch, CRC_AT, crc32c(batch[CHECKED_FROM:]))
    return bytes(batch)


def in_an_unknown_codec() -> bytes:
    batch = build_batch(numbered(10, 10), base_offset=10)
    batch[ATTRIBUTES_AT + 1] |= 7
    return sealed_again(batch)


def larger_than_allowed() -> bytes:
    """It says so, and is large enough that it could be true."""
    body = b"\x80\x80\x80\x96\x01" + bytes(14 * MiB)  # a snappy block's length: 300 MiB
    batch = seal_batch(body, count=10, base_timestamp=0, max_timestamp=0, base_offset=10)
    batch[ATTRIBUTES_AT + 1] |= COMPRESSIONS.index("snappy")
    return sealed_again(batch)


@pytest.mark.parametrize(
    ("make", "why"),
    [(in_an_unknown_codec, "compression type id 7"), (larger_than_allowed, "holds more than 268435456 bytes")],
)
def test_what_cannot_be_decompressed_is_passed_over(make: Callable[[], bytes], why: str) -> None:
    before, after = (build_batch(numbered(10, start), base_offset=start, compression="zstd") for start in (0, 20))
    found: list[Damaged] = []
    of = TopicPartition("t", 0)
    parts = list(decode_response(select_visible(bytes(before) + make() + bytes(after)), of, found.append))
    assert [offset for part in parts for offset in part.offset.tolist()] == [*range(10), *range(20, 30)]
    assert [(one.first, one.last) for one in found] == [(10, 19)]
    assert why in found[0].why


def test_options(tmp_path: Path) -> None:
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "corruptBatches": "quarantine"}
    with pytest.raises(PipelineFailed, match="needs quarantinePath"):
        read_options(given, "batch")
    assert read_options({**given, "quarantinePath": "/q"}, "batch").quarantine == "/q"
    with pytest.raises(PipelineFailed, match="it is one of fail, quarantine"):
        read_options({**given, "corruptBatches": "ignore"}, "batch")
    with pytest.raises(RecordsDamaged):
        raise_damaged(Damaged(partition=TopicPartition("t", 0), first=0, last=0, why="", data=b""))


@pytest.mark.spark
def test_an_archive_stops_or_sets_aside(
    spark: "SparkSession", broker: Broker, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    three_batches(cluster, topic)
    told: dict[str, Any] = {"topics": [topic], "available_now": True}
    with damaging(broker.bootstrap, flipping(b"value 105")) as bootstrap:
        with pytest.raises(Exception, match=f"offsets 10…19 of {topic}-0 cannot be read"):
            archive(spark, bootstrap, tmp_path / "h", **told)
        done = archive(spark, bootstrap, tmp_path / "h", quarantine=True, **told)
    assert (done.records, done.quarantined) == (20, 10)
    assert len(list((tmp_path / "h" / "_tailrace" / "quarantine").glob("*.batch"))) == 1
    assert history(spark, tmp_path / "h").count() == 20
    found = audit(spark, tmp_path / "h")
    assert (found.findings, found.partitions[0].explained) == ((), {"quarantined": 10})
    assert found.notes[0].startswith(f"{topic}-0: offsets 10…19 could not be read when they were archived")
