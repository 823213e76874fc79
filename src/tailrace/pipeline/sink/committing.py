"""What the driver does when all tasks have written: decide the batch, commit each transaction, record it as done.

A batch is decided only after a check that every transaction is still open, with the epoch that its task had. Once
decided, the batch will be committed, by this driver or by the next. The next driver looks for a decided batch before
its tasks run, because they use the same transactional ids. When Spark aborts a batch, its transactions are aborted,
unless the batch was decided.
"""

from collections.abc import Sequence
from dataclasses import replace

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.kafka.transactions import Transaction, end_transaction, transaction_state
from tailrace.pipeline.sink.options import WriteOptions
from tailrace.pipeline.sink.progress import (
    Progress,
    checksum,
    commit_transactions,
    read_progress,
    transaction_name,
    write_progress,
)
from tailrace.pipeline.sink.write_task import TaskCommitMessage


def commit_all(options: WriteOptions, messages: Sequence[TaskCommitMessage | None]) -> None:
    """Commit a batch as a whole."""
    written = [message for message in messages if message is not None]
    if not options.exactly_once or not any(one.producer or one.is_decided for one in written):
        return
    with options.access.cluster() as cluster:
        known = read_progress(cluster, options.sink_id)
        if known is not None and known.covers(written[0].query, written[0].batch):
            _complete_known(cluster, options, known)
            return
        decided = _decision(cluster, options, written, 0 if known is None else known.number)
        write_progress(cluster, options.sink_id, decided.topic, decided)
        _complete(cluster, options, decided)


def complete_decided(options: WriteOptions) -> None:
    """Commit the batch that an earlier driver decided but did not finish, whichever query it belongs to."""
    if not options.exactly_once:
        return
    with options.access.cluster() as cluster:
        known = read_progress(cluster, options.sink_id)
        if known is not None:
            _complete_known(cluster, options, known)


def abort_all(options: WriteOptions, messages: Sequence[TaskCommitMessage | None]) -> None:
    """Abort the transactions that the tasks left open, unless their batch was decided."""
    written = [message for message in messages if message is not None and message.producer is not None]
    if not written or not options.exactly_once:
        return
    with options.access.cluster() as cluster:
        known = read_progress(cluster, options.sink_id)
        if known is not None and known.covers(written[0].query, written[0].batch):
            return
        for one in written:
            assert one.producer is not None
            name = transaction_name(options.sink_id, one.task, one.attempt)
            end_transaction(cluster, Transaction(name, one.producer), commit=False)


def _complete_known(cluster: Cluster, options: WriteOptions, known: Progress) -> None:
    """Commit the batch named in the note on the broker, if it is decided but not done."""
    if known.state == "decided":
        _complete(cluster, options, known)


def _complete(cluster: Cluster, options: WriteOptions, decided: Progress) -> None:
    commit_transactions(cluster, options.sink_id, decided)
    done = replace(decided, state="done", number=decided.number + 1, attempts=(), producers=0)
    write_progress(cluster, options.sink_id, decided.topic, done)
    _abort_others(cluster, options, decided)


def _decision(cluster: Cluster, options: WriteOptions, written: Sequence[TaskCommitMessage], last: int) -> Progress:
    attempts = [-1] * (1 + max(one.task for one in written))
    for one in written:
        if one.producer is None:
            continue
        _demand_open(cluster, options, one)
        attempts[one.task] = one.attempt
    return Progress(
        query=written[0].query,
        batch=written[0].batch,
        state="decided",
        number=last + 1,
        topic=_topic(options, written),
        attempts=tuple(attempts),
        producers=checksum(one.producer for one in sorted(written, key=_task) if one.producer is not None),
    )


def _demand_open(cluster: Cluster, options: WriteOptions, one: TaskCommitMessage) -> None:
    """Raise unless the transaction is still open, with the producer id and epoch that the task had."""
    state, producer = transaction_state(cluster, transaction_name(options.sink_id, one.task, one.attempt))
    if state != "Ongoing" or producer != one.producer:
        raise PipelineFailed(
            f"the transaction of task {one.task} is {state}, or belongs to another producer: it timed out, or another "
            "query uses this sinkId. Nothing of this batch was committed"
        )


def _task(one: TaskCommitMessage) -> int:
    return one.task


def _topic(options: WriteOptions, written: Sequence[TaskCommitMessage]) -> str:
    """An existing topic: the notes are stored with an offset committed for it."""
    return next((topic for one in written for topic in one.topics), options.topic)


def _abort_others(cluster: Cluster, options: WriteOptions, decided: Progress) -> None:
    """Abort the transactions of task attempts that did not win: readers would wait for them until they time out."""
    for task, winner in enumerate(decided.attempts):
        for attempt in (attempt for attempt in range(winner + 2) if attempt != winner):
            name = transaction_name(options.sink_id, task, attempt)
            state, producer = transaction_state(cluster, name)
            if state == "Ongoing":
                end_transaction(cluster, Transaction(name, producer), commit=False)
