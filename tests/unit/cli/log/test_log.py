"""`tailrace log`: output for an intact and for a damaged data directory."""

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tailrace.testing import Broker
from tests.unit.cli.program import DEADLINE_S, run_tailrace
from tests.unit.log.logs import on_loop, open_log
from tests.unit.log.state.transacting import mark, send


@pytest.fixture(scope="module")
def data_of_a_stopped_broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a stopped broker that has a topic `orders`."""
    folder = tmp_path_factory.mktemp("log") / "data"
    with Broker(data_dir=folder) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        for number in range(3):
            producer.produce("orders", f"order {number}".encode(), key=b"k", headers=[("h", b"\xff")])
            assert producer.flush(DEADLINE_S) == 0
    return folder


def partition_folder(data_dir: Path) -> Path:
    rows = [json.loads(line) for line in run_tailrace("log", "dump", str(data_dir), "--json").out.splitlines()]
    assert {row["topic"] for row in rows} == {"orders", "__cluster_metadata"}
    (found,) = [one for one in data_dir.iterdir() if one.is_dir() and not one.name.startswith("AAAAAAAA")]
    return found


def test_batches_and_records_by_topic_name(data_of_a_stopped_broker: Path) -> None:
    where = ("orders", "--data-dir", str(data_of_a_stopped_broker), "--json")
    batches = [json.loads(line) for line in run_tailrace("log", "dump", *where).out.splitlines()]
    assert [(one["base_offset"], one["last_offset"], one["records"]) for one in batches] == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 1),
    ]
    records = [json.loads(line) for line in run_tailrace("log", "dump", *where, "-r", "-o", "1").out.splitlines()]
    assert [(one["offset"], one["key"], one["value"]) for one in records] == [(1, "k", "order 1"), (2, "k", "order 2")]
    assert records[0]["headers"] == [{"name": "h", "value_base64": "/w=="}]


def test_tables_for_people(data_of_a_stopped_broker: Path) -> None:
    shown = run_tailrace("log", "dump", "orders", "-d", str(data_of_a_stopped_broker), "--records", "--max", "2")
    assert "order 1" in shown.out
    assert "order 2" not in shown.out
    assert "first 2" in shown.err
    named = run_tailrace("log", "dump", "__cluster_metadata", "-d", str(data_of_a_stopped_broker), "--records").out
    assert "TopicAdded(name='orders', topic_id=" in named


def test_wide_shows_more_columns(data_of_a_stopped_broker: Path) -> None:
    where = ("log", "dump", "orders", "-d", str(data_of_a_stopped_broker))
    narrow, wide = (run_tailrace(*where, *more).out.splitlines()[2] for more in ((), ("--wide",)))
    assert narrow.split() == ["base", "offset", "last", "offset", "records", "bytes", "time", "file", "position"]
    assert "epoch" in wide
    assert "compression" in wide


def test_null_is_shown_unlike_empty(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", fsync="never") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", value=None, key=b"")
        assert producer.flush(DEADLINE_S) == 0
    where = ("log", "dump", "t", "-r", "-d", str(tmp_path / "data"))
    assert run_tailrace(*where).out.count("(null)") == 1
    row = json.loads(run_tailrace(*where, "--json").out)
    assert (row["key"], row["value"], row["headers"]) == ("", None, [])


def test_an_intact_directory_is_good(data_of_a_stopped_broker: Path) -> None:
    ran = run_tailrace("log", "verify", "--data-dir", str(data_of_a_stopped_broker))
    assert (ran.code, ran.err) == (0, "")
    row = next(line.split() for line in ran.out.splitlines() if line.split()[:1] == ["orders"])
    assert row[:5] == ["orders", "0", "1", "3", "3"]
    assert row[-1] == "good"


def test_damage_is_reported_by_file_and_position(data_of_a_stopped_broker: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a-copy"
    copy.mkdir()
    (segment,) = partition_folder(data_of_a_stopped_broker).glob("*.log")
    data = bytearray(segment.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 70] ^= 0x40
    (copy / segment.name).write_bytes(data)
    ran = run_tailrace("log", "verify", str(copy))
    assert (ran.code, ran.err) == (1, "tailrace: 1 problem found.\n")
    assert f"{copy}/{segment.name} at byte {second}: " in ran.out
    (report,) = json.loads(run_tailrace("log", "verify", str(copy), "--json").out)
    assert (report["records"], report["problems"][0]["position"]) == (1, second)
    dumped = run_tailrace("log", "dump", str(copy), "--records")
    assert dumped.code == 0
    assert "order 0" in dumped.out
    assert "checksum" in dumped.out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nothing-there", "--data-dir", "{data}"), "nothing-there"),
        (("{empty}/data",), "{empty}/data does not exist"),
        (("--data-dir", "{empty}/data"), "{empty}/data does not exist"),
        (("--data-dir", "{empty}"), "not a data directory"),
        (("{empty}",), "neither a data directory nor a partition folder"),
        (("orders", "--partition", "3", "--data-dir", "{data}"), "no partition 3"),
    ],
)
def test_missing_directories_topics_and_partitions(
    data_of_a_stopped_broker: Path, tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    ran = run_tailrace("log", "verify", *(word.format(data=data_of_a_stopped_broker, empty=tmp_path) for word in words))
    assert (ran.code, ran.out) == (1, "")
    assert expected.format(empty=tmp_path) in ran.err


def test_a_partition_without_a_topic_name_is_shown_by_its_id(data_of_a_stopped_broker: Path, tmp_path: Path) -> None:
    folder = partition_folder(data_of_a_stopped_broker)
    (tmp_path / folder.name).symlink_to(folder)
    (report,) = json.loads(run_tailrace("log", "verify", str(tmp_path / folder.name), "--json").out)
    assert f"{report['topic']}-0" == folder.name


def test_markers_are_shown_and_counted(tmp_path: Path) -> None:
    folder = tmp_path / "AAAAAAAAAAAAAAAAAAAACg-0"

    @on_loop
    async def write() -> None:
        log = await open_log(folder)
        for producer, commits in ((7, True), (8, False), (9, None)):
            send(log, producer)
            if commits is not None:
                mark(log, producer, commits=commits)

    write()
    batches = [json.loads(line) for line in run_tailrace("log", "dump", str(folder), "--json").out.splitlines()]
    assert [(one["kind"], one["producer_id"]) for one in batches] == [
        ("transactional", 7),
        ("commit", 7),
        ("transactional", 8),
        ("abort", 8),
        ("transactional", 9),
    ]
    shown = run_tailrace("log", "dump", str(folder), "--records").out
    assert [line.split()[0] for line in shown.splitlines() if "commit" in line or "abort" in line] == ["1", "3"]
    (report,) = json.loads(run_tailrace("log", "verify", str(folder), "--json").out)
    assert (report["records"], report["markers"], report["open"], report["problems"]) == (5, 2, 1, [])


def test_a_repair_is_a_dry_run_first_and_keeps_what_is_sound(data_of_a_stopped_broker: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    shutil.copytree(data_of_a_stopped_broker, data_dir)
    where = ("log", "repair", "--data-dir", str(data_dir))
    assert (run_tailrace(*where).code, run_tailrace(*where).out) == (0, "No damage found.\n")
    (segment,) = partition_folder(data_dir).glob("*.log")
    data = bytearray(segment.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[second + 70] ^= 0x40
    segment.write_bytes(data)
    ran = run_tailrace(*where, "orders")
    assert (ran.code, ran.err) == (1, "tailrace: there is damage. Nothing was changed.\n")
    assert f"{segment} at byte {second}: " in ran.out
    assert "offsets 1 to 1: checksum mismatch" in ran.out
    assert segment.read_bytes() == data
    ran = run_tailrace(*where, "orders", "--yes", "--json")
    assert (ran.code, ran.err) == (0, "")
    (report,) = json.loads(ran.out)
    assert report["repaired"]
    assert (Path(report["aside"]) / segment.name).read_bytes() == data
    with Broker(data_dir=data_dir) as broker:
        consumed = run_tailrace("consume", "orders", "--from-beginning", "--max", "2", bootstrap=broker.bootstrap)
        assert ("order 0" in consumed.out, "order 1" in consumed.out, "order 2" in consumed.out) == (True, False, True)
        busy = run_tailrace(*where)
        assert busy.code == 1
        assert "Stop the broker first." in busy.err


def test_the_metadata_log_is_not_repaired(data_of_a_stopped_broker: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    shutil.copytree(data_of_a_stopped_broker, data_dir)
    (segment,) = data_dir.glob("AAAAAAAA*/*.log")
    data = bytearray(segment.read_bytes())
    data[70] ^= 1
    segment.write_bytes(data)
    ran = run_tailrace("log", "repair", "--data-dir", str(data_dir), "--yes")
    assert ran.code == 1
    assert "the metadata log is not repaired: restore its folder from a backup" in ran.out
    assert segment.read_bytes() == data
