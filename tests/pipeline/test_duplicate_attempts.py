"""A range that is archived twice: by a task that was given up and still runs, or beside another of its kind."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.histories import writing
from tailrace.pipeline.histories.committing import commit_batch, open_or_create
from tailrace.pipeline.histories.file_checks import wrong_with
from tailrace.pipeline.histories.manifest import ArchivedRange
from tailrace.pipeline.histories.writing import archive_range
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.fetching import OffsetRange
from tailrace.testing import Broker
from tests.pipeline.damaging_proxy import damaging, without
from tests.pipeline.test_histories import two_days
from tests.pipeline.topics import make_topic, numbered, remove_topic, write


@pytest.fixture
def folder(cluster: Cluster, topic: str, tmp_path: Path) -> Path:
    make_topic(cluster, topic)
    for number in range(4):
        write(cluster, topic, numbered(10, 10 * number))
    open_or_create(tmp_path / "h")
    return tmp_path / "h"


def attempt(cluster: Cluster, topic: str, folder: Path) -> ArchivedRange:
    return archive_range(cluster, OffsetRange(partition=TopicPartition(topic, 0), start=0, end=40), folder)


def names_in(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.glob("topic=*/*/*")]


def test_all_attempts_say_the_same_of_a_file(
    cluster: Cluster, topic: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second gets its records in other pieces, so its bytes would be others; the first is committed."""
    first = attempt(cluster, topic, folder)
    monkeypatch.setattr(writing, "ARCHIVE_FETCH_BYTES", 1)
    monkeypatch.setattr(writing, "ROW_GROUP_BYTES", 1)
    other = attempt(cluster, topic, folder.with_name("other"))
    assert (other.files[0].content, other.files[0].crc != first.files[0].crc) == (first.files[0].content, True)
    assert attempt(cluster, topic, folder) == first
    assert wrong_with(folder, first.files[0]) == ""
    assert names_in(folder) == [first.files[0].path]


def test_what_the_history_lives_by_stays(cluster: Cluster, topic: str, folder: Path) -> None:
    first = attempt(cluster, topic, folder)
    commit_batch(folder, [first])
    remove_topic(cluster, topic)
    make_topic(cluster, topic)
    write(cluster, topic, [one._replace(value=b"another") for one in numbered(40)])
    with pytest.raises(PipelineFailed, match="is in the history already, and was left as it is"):
        attempt(cluster, topic, folder)
    assert wrong_with(folder, first.files[0]) == ""
    assert names_in(folder) == [first.files[0].path]


@pytest.mark.parametrize("left", [b"", b"PAR1 and nothing else PAR1"])
def test_what_a_dead_archive_left_is_replaced(cluster: Cluster, topic: str, folder: Path, left: bytes) -> None:
    first = attempt(cluster, topic, folder)
    (folder / first.files[0].path).write_bytes(left)
    again = attempt(cluster, topic, folder)
    assert again.files[0].content == first.files[0].content
    assert wrong_with(folder, again.files[0]) == ""
    assert names_in(folder) == [first.files[0].path]


@pytest.fixture
def compacted(cluster: Cluster, topic: str, tmp_path: Path) -> Path:
    """A history of a topic whose records are of two days in turn."""
    make_topic(cluster, topic, policy="compact")
    for number in range(4):
        write(cluster, topic, two_days(10, 10 * number))
    open_or_create(tmp_path / "h")
    return tmp_path / "h"


@pytest.mark.parametrize("less_first", [False, True])
def test_attempts_between_which_the_log_is_compacted(
    broker: Broker, cluster: Cluster, topic: str, compacted: Path, less_first: bool
) -> None:
    """Whichever of them is committed: what it says is what is there."""
    with damaging(broker.bootstrap, without(b"value 1")) as bootstrap, Cluster(bootstrap) as behind:
        first, second = (behind, cluster) if less_first else (cluster, behind)
        one = attempt(first, topic, compacted)
        other = attempt(second, topic, compacted)
    assert one.count == (20 if less_first else 40)
    assert (other, other.is_whole) == (one, True)
    assert [wrong_with(compacted, file) for file in one.files] == ["", ""]


def test_attempts_that_contradict_each_other(cluster: Cluster, topic: str, compacted: Path) -> None:
    """A dead archive left a file of a topic that was made anew since."""
    attempt(cluster, topic, compacted)
    remove_topic(cluster, topic)
    make_topic(cluster, topic, policy="compact")
    write(cluster, topic, [one._replace(value=b"another") for one in two_days(39)])
    write(cluster, topic, two_days(1, 39))
    again = attempt(cluster, topic, compacted)
    assert [wrong_with(compacted, file) for file in again.files] == ["", ""]
    table = pq.read_table(compacted / again.files[0].path, columns=["value"], partitioning=None)
    assert set(table.column("value").to_pylist()) == {b"another"}
