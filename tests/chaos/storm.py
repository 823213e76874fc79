"""A whole run: a cluster of three under load, trouble for a while, then quiet, and every promise held to what is there.

What a run leaves behind, the brokers' data and logs and the diary, is removed when all went well, and kept when not.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tailrace.testing import Cluster
from tests.chaos import verdict
from tests.chaos.diary import Diary
from tests.chaos.monkey import Monkey
from tests.chaos.readers import Companion, complaints_of, read_back
from tests.chaos.writers import Writer

TOPIC: Final = "storm"
SETTLED_WITHIN_S: Final = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    seed: int
    seconds: float
    writers: int = 3
    partitions: int = 24
    per_second: float = 250.0  # records of each writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Weathered:
    acknowledged: int
    longest_wait_s: float
    troubles: dict[str, int]


@contextmanager
def kept_on_failure(name: str, how_to_repeat: str) -> Iterator[Path]:
    """A folder that goes away unless something fails; then the failure says where it is."""
    folder = Path(tempfile.mkdtemp(prefix=f"tailrace-{name}-"))
    try:
        yield folder
    except BaseException as error:
        diary = Diary(folder / "diary.txt").text()
        error.add_note(f"{how_to_repeat}\ndata and logs are kept in {folder}\nwhat happened:\n{diary}")
        raise
    shutil.rmtree(folder, ignore_errors=True)


def log_into(folder: Path) -> Callable[[int, str], None]:
    """Each broker's log, in a file of its own."""

    def take(broker_id: int, line: str) -> None:
        with open(folder / f"broker-{broker_id}.log", "a", encoding="utf-8") as file:
            file.write(line + "\n")

    return take


def weather(storm: Storm) -> Weathered:
    """Raises an AssertionError with all complaints."""
    with kept_on_failure("chaos", f"seed {storm.seed}, {storm.seconds:g} s") as folder:
        diary = Diary(folder / "diary.txt")
        diary.note(f"seed {storm.seed}, {storm.seconds:g} s")
        cluster = Cluster(3, data_dir=folder / "data", on_log=log_into(folder))
        with cluster:
            complaints, ends, weathered = _under_load(cluster, storm, diary)
        complaints += verdict.first_few(verdict.about_replicas([one.data_dir for one in cluster.brokers], ends))
        assert not complaints, "\n".join(["promises were broken:", *complaints])
        diary.note(json.dumps(weathered.troubles))
    return weathered


def _under_load(cluster: Cluster, storm: Storm, diary: Diary) -> tuple[list[str], list[int], Weathered]:
    make_topic(cluster, TOPIC, storm.partitions)
    address, partitions = cluster.bootstrap, storm.partitions
    writers = [
        Writer(one, address, TOPIC, partitions, per_second=storm.per_second, folder=diary.path.parent)
        for one in range(storm.writers)
    ]
    companion = Companion(address, TOPIC, partitions)
    try:
        Monkey(cluster, writers, storm.seed, diary).rage(storm.seconds)
    finally:
        for writer in writers:
            writer.stop(SETTLED_WITHIN_S)
        companion.stop()
    cluster.wait_until_healthy(SETTLED_WITHIN_S)
    again = read_back(address, TOPIC, partitions, SETTLED_WITHIN_S)
    companion.reader.reach(again.ends_read, SETTLED_WITHIN_S)
    companion.reader.close()
    complaints = [one for writer in writers for one in writer.complaints] + complaints_of([again, companion.reader])
    complaints += verdict.first_few(verdict.about_promises(writers, again.found))
    complaints += verdict.first_few(verdict.about_what_was_seen(companion.reader.found, again.found))
    weathered = Weathered(
        acknowledged=sum(writer.acknowledged for writer in writers),
        longest_wait_s=max(writer.longest_wait_s for writer in writers),
        troubles=diary.counts,
    )
    return complaints, again.ends_read, weathered


def make_topic(cluster: Cluster, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(name, partitions, 3)])[name].result(SETTLED_WITHIN_S)
    cluster.wait_until_healthy(SETTLED_WITHIN_S)
