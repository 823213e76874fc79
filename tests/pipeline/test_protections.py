"""Each protection is needed: with it every record is there once, and without it not, for the reason that is named."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from tailrace.pipeline import crash_points, protections
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.postgres.columns import OWN, Column, progress_sql, table_sql
from tailrace.pipeline.postgres.writer import PostgresWriter
from tailrace.testing import Broker
from tests.pipeline import scenarios
from tests.pipeline.scenarios import Died, Stage, came_of

Scenario = Callable[[Stage], str]

WITHOUT: dict[str, tuple[Scenario, str]] = {  # what it is there for, and what comes of it when it is left out
    "source: a start at latest is kept": (scenarios.a_query_dies_in_its_first_batch, "lost"),
    "source: batches fit their checksums": (scenarios.a_bit_is_flipped_on_the_way, "lost"),
    "sink: rows are written in transactions": (scenarios.a_task_is_run_again, "twice"),
    "sink: each attempt has a transaction of its own": (scenarios.the_first_of_two_attempts_wins, "refused"),
    "sink: only what is open is decided": (scenarios.a_straggler_begins_anew, "lost"),
    "sink: it is decided before the first commit": (scenarios.a_driver_dies_between_two_commits, "twice"),
    "sink: what is decided is not written again": (scenarios.a_driver_dies_between_two_commits, "refused"),
    "sink: what is decided is completed": (scenarios.a_driver_dies_between_two_commits, "lost"),
    "sink: attempts that lost are aborted": (scenarios.two_attempts_run_beside_each_other, "lost"),
    "archive: a range has one name": (scenarios.a_task_archives_again, "twice"),
    "archive: every offset is accounted for": (scenarios.a_task_says_too_little, "lost"),
    "archive: it goes on where the history ends": (scenarios.an_archive_is_run_again, "refused"),
    "archive: a batch begins where the history ends": (scenarios.a_batch_that_does_not_follow, "lost"),
    "archive: the number of a commit is taken once": (scenarios.two_writers_want_one_number, "lost"),
    "compact: what is read is as it was written": (scenarios.a_damaged_file_is_to_be_merged, "lost"),
    "compact: the history says the same as before": (scenarios.a_merged_range_has_too_little, "lost"),
    "compact: what was replaced stays for a while": (scenarios.a_reader_has_listed_what_is_replaced, "lost"),
    "replay: records and progress move together": (scenarios.a_replay_is_run_again, "twice"),
}
ELSEWHERE = ["postgres: rows are known by their offset"]  # tested below, with what it needs


@pytest.fixture
def stage(
    broker: Broker, cluster: Cluster, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Stage]:
    @contextlib.contextmanager
    def dying_at(place: str) -> Iterator[None]:
        (tmp_path / "place").write_text(place)
        with pytest.raises(Died):
            yield

    def die(_: list[int]) -> None:
        raise Died

    def build(name: str) -> Stage:
        folder = tmp_path / name / "history"
        named = f"{topic}-{name}"
        return Stage(bootstrap=broker.bootstrap, cluster=cluster, topic=named, folder=folder, dying_at=dying_at)

    monkeypatch.setenv(crash_points.VARIABLE, str(tmp_path / "place"))
    monkeypatch.setattr(crash_points, "die", die)  # this process plays many, and shall not die with the first
    return build


@pytest.mark.parametrize("protection", WITHOUT)
def test_it_is_needed(stage: Callable[[str], Stage], monkeypatch: pytest.MonkeyPatch, protection: str) -> None:
    scenario, reason = WITHOUT[protection]
    assert scenario(stage("with")) == "once"
    monkeypatch.setenv(protections.VARIABLE, protection)
    assert scenario(stage("without")) == reason


def test_all_of_them_are_tried() -> None:
    assert sorted([*WITHOUT, *ELSEWHERE]) == sorted(get_args(protections.Protection))


def test_rows_in_postgres_are_known_by_their_offset(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    columns = [Column(name, kind) for name, kind in OWN[:3]]

    def a_task_is_run_again(table: str) -> str:
        batch = pa.record_batch({"topic": ["t"] * 3, "partition": [0] * 3, "offset": [0, 1, 2]})
        with psycopg.connect(dsn) as connection:
            connection.execute(table_sql(table, columns))
            connection.execute(progress_sql(table))
        for _ in range(2):
            PostgresWriter(dsn, table, columns).write(iter([batch]))
        with psycopg.connect(dsn) as connection:
            rows = connection.execute(f'SELECT "offset" FROM {table}').fetchall()
        return came_of(range(3), [offset for (offset,) in rows])

    assert a_task_is_run_again("known") == "once"
    monkeypatch.setenv(protections.VARIABLE, ELSEWHERE[0])
    assert a_task_is_run_again("unknown") == "twice"
