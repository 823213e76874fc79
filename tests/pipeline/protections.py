"""What keeps each guarantee of the pipeline, by name, and how a test takes it away in this process.

Each of these functions replaces, until the end of the test, the one piece of the pipeline that the guarantee rests on.
`scenarios` has for each the failure that it is there for, and `test_protections` sees what comes of that without it.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tailrace.client import visible_batches
from tailrace.pipeline.histories import committing as history_commits
from tailrace.pipeline.histories import delta_log
from tailrace.pipeline.histories.layout import file_path
from tailrace.pipeline.histories.pending_offsets import PendingOffsets, pending_offsets
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition
from tailrace.pipeline.kafka.offsets import Offsets, commit_offsets
from tailrace.pipeline.kafka.producer import Producer
from tailrace.pipeline.kafka.transactions import Transaction, init_producer_id
from tailrace.pipeline.postgres import columns
from tailrace.pipeline.replaying import partition as replaying
from tailrace.pipeline.sink import committing, write_task
from tailrace.pipeline.sink.progress import Progress, transaction_name, write_progress
from tailrace.pipeline.source import stream
from tailrace.pipeline.source.options import ReadOptions
from tailrace.pipeline.upkeep import compact, merging
from tailrace.pipeline.upkeep.vacuum import Leftover


def replace_everywhere(patch: pytest.MonkeyPatch, function: Callable[..., Any], new: Callable[..., Any]) -> None:
    """In every module of the pipeline and of these tests that has imported the function; here it stays as it is."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("tailrace.pipeline.", "tests.pipeline.")) and name != __name__:
            for attribute in [one for one, value in vars(module).items() if value is function]:
                patch.setattr(module, attribute, new)


def nothing(*_: object, **__: object) -> None:
    """In place of a function that checks, or that writes something down."""


def start_at_latest_is_not_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(stream, "commit_offsets", nothing)


def checksums_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(visible_batches, "_check", nothing)


def rows_are_written_without_transactions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write_task, "_identity", lambda cluster, options, by: (init_producer_id(cluster), None))


def attempts_share_a_transaction(patch: pytest.MonkeyPatch) -> None:
    replace_everywhere(patch, transaction_name, lambda sink, task, attempt: transaction_name(sink, task, 0))


def closed_transactions_are_decided(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "_demand_open", nothing)


def commits_begin_before_the_decision(patch: pytest.MonkeyPatch) -> None:
    def write(cluster: Cluster, sink: str, topic: str, progress: Progress) -> None:
        if progress.state != "decided":
            write_progress(cluster, sink, topic, progress)

    patch.setattr(committing, "write_progress", write)


def decided_batches_are_written_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(write_task, "_is_decided", lambda *_: False)


def decided_batches_are_not_completed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "_complete_known", nothing)


def attempts_that_lost_stay_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(committing, "_abort_others", nothing)


def a_range_has_many_names(patch: pytest.MonkeyPatch) -> None:
    def path(of: TopicPartition, date: str, start: int, end: int) -> str:
        return file_path(of, date, start, end).replace(".parquet", f"-{time.monotonic_ns()}.parquet")

    replace_everywhere(patch, file_path, path)


def offsets_are_not_accounted_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(history_commits, "_demand_whole", nothing)


def an_archive_begins_with_the_log(patch: pytest.MonkeyPatch) -> None:
    def forgetful(cluster: Cluster, asked: ReadOptions, _: Offsets) -> PendingOffsets:
        return pending_offsets(cluster, asked, {})

    replace_everywhere(patch, pending_offsets, forgetful)


def a_batch_begins_anywhere(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(history_commits, "_demand_next", nothing)


def a_commit_replaces_another(patch: pytest.MonkeyPatch) -> None:
    def take(fresh: Path, final: Path) -> None:
        fresh.replace(final)

    patch.setattr(delta_log, "_take_number", take)


def damaged_files_are_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merging, "_demand_as_written", nothing)


def a_compaction_changes_the_history(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compact, "_demand_the_same", nothing)


def replaced_files_go_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leftover, "is_old", lambda leftover, before_ms: leftover.kind != "not ours")


def progress_moves_after_the_records(patch: pytest.MonkeyPatch) -> None:
    """In a commit of offsets of its own, behind that of the transaction."""
    due: list[tuple[Cluster, str, Offsets]] = []
    begin_next_transaction = Producer.begin_next_transaction

    def later(cluster: Cluster, _: Transaction, group: str, offsets: Offsets) -> None:
        due.append((cluster, group, offsets))

    def move_and_begin(producer: Producer) -> None:
        commit_offsets(*due.pop())
        begin_next_transaction(producer)

    patch.setattr(replaying, "commit_offsets_within", later)
    patch.setattr(Producer, "begin_next_transaction", move_and_begin)


def rows_in_postgres_have_no_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(columns, "_PRIMARY_KEY", "CHECK (true)")
    patch.setattr(columns, "_ON_CONFLICT", "")
