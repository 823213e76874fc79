"""Each protection is needed: with it every record is there once; without it not, for the reason that is named."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.postgres.columns import RECORD_COLUMNS, Column, progress_sql, table_sql
from tailrace.pipeline.postgres.writer import PostgresWriter
from tailrace.testing import Broker
from tests.pipeline import protections, scenarios
from tests.pipeline.scenarios import Stage, came_of


class Needed(NamedTuple):
    scenario: Callable[[Stage], str]  # what the protection is there for
    without: Callable[[pytest.MonkeyPatch], None]  # takes it away
    outcome: str  # of the scenario, then


NEEDED = {
    "source: a start at latest is kept": Needed(
        scenarios.a_query_dies_in_its_first_batch, protections.start_at_latest_is_not_kept, "lost"
    ),
    "source: batches fit their checksums": Needed(
        scenarios.a_bit_is_flipped_on_the_way, protections.checksums_are_not_compared, "lost"
    ),
    "sink: rows are written in transactions": Needed(
        scenarios.a_task_is_run_again, protections.rows_are_written_without_transactions, "twice"
    ),
    "sink: each attempt has a transaction of its own": Needed(
        scenarios.the_first_of_two_attempts_wins, protections.attempts_share_a_transaction, "refused"
    ),
    "sink: only what is open is decided": Needed(
        scenarios.a_straggler_begins_anew, protections.closed_transactions_are_decided, "lost"
    ),
    "sink: it is decided before the first commit": Needed(
        scenarios.a_driver_dies_between_two_commits, protections.commits_begin_before_the_decision, "twice"
    ),
    "sink: what is decided is not written again": Needed(
        scenarios.a_driver_dies_between_two_commits, protections.decided_batches_are_written_again, "refused"
    ),
    "sink: what is decided is completed": Needed(
        scenarios.a_driver_dies_between_two_commits, protections.decided_batches_are_not_completed, "lost"
    ),
    "sink: attempts that lost are aborted": Needed(
        scenarios.two_attempts_run_beside_each_other, protections.attempts_that_lost_stay_open, "lost"
    ),
    "archive: a range has one name": Needed(
        scenarios.a_task_archives_again, protections.a_range_has_many_names, "twice"
    ),
    "archive: every offset is accounted for": Needed(
        scenarios.a_task_says_too_little, protections.offsets_are_not_accounted_for, "lost"
    ),
    "archive: it goes on where the history ends": Needed(
        scenarios.an_archive_is_run_again, protections.an_archive_begins_with_the_log, "refused"
    ),
    "archive: a batch begins where the history ends": Needed(
        scenarios.a_batch_that_does_not_follow, protections.a_batch_begins_anywhere, "lost"
    ),
    "archive: the number of a commit is taken once": Needed(
        scenarios.two_writers_want_one_number, protections.a_commit_replaces_another, "lost"
    ),
    "compact: what is read is as it was written": Needed(
        scenarios.a_damaged_file_is_to_be_merged, protections.damaged_files_are_merged, "lost"
    ),
    "compact: the history says the same as before": Needed(
        scenarios.a_merged_range_has_too_little, protections.a_compaction_changes_the_history, "lost"
    ),
    "compact: what was replaced stays for a while": Needed(
        scenarios.a_reader_has_listed_what_is_replaced, protections.replaced_files_go_at_once, "lost"
    ),
    "replay: records and progress move together": Needed(
        scenarios.a_replay_is_run_again, protections.progress_moves_after_the_records, "twice"
    ),
}


@pytest.fixture
def stage(broker: Broker, cluster: Cluster, topic: str, tmp_path: Path) -> Callable[[str], Stage]:
    def build(name: str) -> Stage:
        folder = tmp_path / name / "history"
        return Stage(bootstrap=broker.bootstrap, cluster=cluster, topic=f"{topic}-{name}", folder=folder)

    return build


@pytest.mark.parametrize("protection", NEEDED)
def test_it_is_needed(stage: Callable[[str], Stage], monkeypatch: pytest.MonkeyPatch, protection: str) -> None:
    needed = NEEDED[protection]
    assert needed.scenario(stage("with")) == "once"
    needed.without(monkeypatch)
    assert needed.scenario(stage("without")) == needed.outcome


def test_rows_in_postgres_are_known_by_their_offset(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    columns = [Column(name, kind) for name, kind in RECORD_COLUMNS[:3]]

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
    protections.rows_in_postgres_have_no_key(monkeypatch)
    assert a_task_is_run_again("unknown") == "twice"
