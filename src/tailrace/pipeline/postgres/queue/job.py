"""`queue_to_postgres`: keep the tables of the HTTP queue up to date, until stopped or up to what there is now."""

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tailrace.pipeline.access import Access
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.option_names import NO_OPTIONS, access_of
from tailrace.pipeline.postgres.queue.database import DATABASE, QueueDatabase
from tailrace.pipeline.postgres.queue.reading import QueueReader
from tailrace.pipeline.postgres.queue.sink import OnNote, OnProgress, QueueSink

if TYPE_CHECKING:
    from psycopg import Connection

AWAY_MAX_S: Final = 60.0  # as long as requests to brokers are retried
AWAY_PAUSE_S: Final = 1.0


def queue_to_postgres(
    bootstrap: str,
    *,
    dsn: str = "",
    topics: str = "",
    available_now: bool = False,
    every_s: float = 10.0,
    options: Mapping[str, str] = NO_OPTIONS,
    on_progress: OnProgress = lambda done, total: None,
    on_note: OnNote = lambda note: None,
) -> int:
    """The number of messages that were written.

    `dsn`: database d_queue unless it names another. `topics` (names separated by commas): whose messages are written;
    none: those that producers and consumers of the queue registered for. A database that goes away is waited for, for a
    minute.
    """
    names = [name.strip() for name in topics.split(",") if name.strip()]

    def sink(cluster: Cluster, connection: "Connection") -> QueueSink:
        return QueueSink(
            QueueReader(cluster), QueueDatabase(connection), topics=names, observe_every_s=every_s,
            on_progress=on_progress, on_note=on_note,
        )  # fmt: skip

    work = _Work(access_of(bootstrap, options), queue_dsn(dsn), sink, on_note)
    return work.run(available_now=available_now, every_s=every_s)


def queue_dsn(dsn: str) -> str:
    """With the database that the queue's operators know, unless there is another."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        given = conninfo_to_dict(dsn)
    except ProgrammingError as error:
        raise PipelineFailed(f"--dsn cannot be read: {' '.join(str(error).split())}") from None
    is_named = "dbname" in given or "service" in given or os.environ.get("PGDATABASE")
    return dsn if is_named else make_conninfo(dsn, dbname=DATABASE)


class _Work:
    """Rounds, over one connection to the database after the other."""

    def __init__(
        self, access: Access, dsn: str, sink: Callable[[Cluster, "Connection"], QueueSink], on_note: OnNote
    ) -> None:
        self._access = access
        self._dsn = dsn
        self._make_sink = sink
        self._on_note = on_note
        self._written = 0
        self._worked_at = float("-inf")

    def run(self, *, available_now: bool, every_s: float) -> int:
        import psycopg

        while True:
            try:
                with psycopg.connect(self._dsn, autocommit=True) as connection, self._access.cluster() as cluster:
                    self._run_rounds(self._make_sink(cluster, connection), available_now=available_now, every_s=every_s)
                    return self._written
            except psycopg.OperationalError as error:
                if time.monotonic() - self._worked_at > AWAY_MAX_S:
                    raise PipelineFailed(f"PostgreSQL does not answer: {_said(error)}") from None
                self._on_note(f"PostgreSQL does not answer, trying again: {_said(error)}")
                time.sleep(AWAY_PAUSE_S)
            except psycopg.Error as error:
                raise PipelineFailed(f"PostgreSQL refuses: {_said(error)}") from None

    def _run_rounds(self, sink: QueueSink, *, available_now: bool, every_s: float) -> None:
        before = self._written
        try:
            sink.prepare()
            while True:
                began = time.monotonic()
                sink.run_round()
                if available_now:
                    return
                time.sleep(max(0.0, every_s - (time.monotonic() - began)))
        finally:
            self._written = before + sink.messages
            self._worked_at = max(self._worked_at, sink.worked_at)


def _said(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".?")
