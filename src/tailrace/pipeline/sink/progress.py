"""The progress of an exactly-once sink, kept on the broker in a note: the metadata of a group's committed offset.

A batch has two states: *decided*, its transactions are to be committed, and *done*, they are committed. Once decided,
a batch is never written again; the next driver commits the rest of it before any of its own tasks runs. The note names
the batch and its transactions: for each task, the attempt that won. The next batch uses the same transactional ids
again, so the note has a checksum of the producer ids and epochs: another producer's transaction is never committed.
"""

import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, Final, Literal

from tailrace.client.cluster import GROUP
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster, TopicPartition, check
from tailrace.pipeline.kafka.offsets import commit_offsets
from tailrace.pipeline.kafka.transactions import ProducerId, Transaction, end_transaction, transaction_state
from tailrace.wire.messages.offset_fetch import OffsetFetchRequest

NOTE_MAX_CHARS: Final = 4000  # brokers allow 4096 bytes of offset metadata

State = Literal["decided", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    query: str  # Spark's query id: each query has its own batch numbers
    batch: int
    state: State
    topic: str  # an existing topic: the notes are stored with its committed offset
    number: int  # of this note: one more than that of the note before
    attempts: tuple[int, ...] = ()  # by task: the attempt whose transaction is committed; -1: the task wrote nothing
    producers: int = 0  # checksum of these attempts' producer ids and epochs, in task order

    def covers(self, query: str, batch: int) -> bool:
        """Whether this batch is already decided or done, so that it must not be written again."""
        return self.query == query and self.batch >= batch


def transaction_name(sink: str, task: int, attempt: int) -> str:
    return f"tailrace-sink-{sink}-{task}-{attempt}"


def group_of(sink: str) -> str:
    return f"tailrace-sink-{sink}"


def read_progress(cluster: Cluster, sink: str) -> Progress | None:
    """The newest note of a sink; None when the sink has no note."""

    def ask() -> list[Any]:
        answer = cluster.coordinator(group_of(sink), GROUP).call(
            OffsetFetchRequest(group_id=group_of(sink), topics=None)
        )
        check(answer.error_code, f"read the progress of sink {sink}")
        return [json.loads(one.metadata) for topic in answer.topics for one in topic.partitions if one.metadata]

    notes = cluster.with_retries(ask)
    if not notes:
        return None
    newest = max(notes, key=lambda note: int(note["number"]))
    attempts = tuple(attempt for count, attempt in newest["attempts"] for _ in range(count))
    return Progress(**{**newest, "attempts": attempts})


def write_progress(cluster: Cluster, sink: str, topic: str, progress: Progress) -> None:
    attempts = [(len(list(same)), attempt) for attempt, same in groupby(progress.attempts)]
    note = json.dumps({**asdict(progress), "attempts": attempts})
    if len(note) > NOTE_MAX_CHARS:
        raise PipelineFailed(
            f"the progress of sink {sink} needs {len(note)} characters, but the limit is {NOTE_MAX_CHARS}: "
            "too many of this batch's tasks were retried"
        )
    commit_offsets(cluster, group_of(sink), {TopicPartition(topic, 0): progress.number}, note)


def checksum(producers: Iterable[ProducerId]) -> int:
    return zlib.crc32(json.dumps(list(producers)).encode())


def commit_transactions(cluster: Cluster, sink: str, progress: Progress) -> None:
    """Commit the transactions of a decided batch that are still open.

    Raise, and commit nothing, when one of the transactions is neither open nor committed, or is another producer's.
    """
    names = [transaction_name(sink, task, attempt) for task, attempt in enumerate(progress.attempts) if attempt >= 0]
    found = [(name, *transaction_state(cluster, name)) for name in names]
    for name, state, _ in found:
        if state not in ("Ongoing", "PrepareCommit", "CompleteCommit"):
            raise PipelineFailed(
                f"batch {progress.batch} of sink {sink} was decided, but its transaction {name} is {state}: it timed "
                "out before it could be committed, and its records are lost. Transactions of this batch that were "
                "committed before stay committed. Raise kafka.transaction.timeout.ms, and use a new sinkId to continue"
            )
    if checksum(producer for _, _, producer in found) != progress.producers:
        raise PipelineFailed(
            f"batch {progress.batch} of sink {sink} was decided, but another producer uses its transactional "
            "ids now; those transactions are not committed. Check whether another query uses this sinkId, and use a "
            "new sinkId to continue"
        )
    for name, state, producer in found:
        if state == "Ongoing":
            end_transaction(cluster, Transaction(name, producer), commit=True)
