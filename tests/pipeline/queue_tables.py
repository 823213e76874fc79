"""The tables of the HTTP queue in a database of a test's own, and the command that fills them."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.unit.doors.http.test_http_queue_libraries import until

TIMEOUT_S = 120.0


@contextmanager
def own_database(server: str, name: str = "") -> Iterator[str]:
    """How to reach a new database of this server, which has no tables."""
    import psycopg

    name = name or f"queue_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
        yield named(server, name)
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def named(server: str, database: str) -> str:
    from psycopg.conninfo import make_conninfo

    return str(make_conninfo(server, dbname=database))


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    import psycopg

    with psycopg.connect(dsn) as connection:
        found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
    return found


def execute(dsn: str, *statements: str) -> None:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        for one in statements:
            connection.execute(one)


def command(bootstrap: str, dsn: str, *more: str) -> list[str]:
    words = ["pipeline", "sink", "postgres", "--queue-tables", "--bootstrap", bootstrap, "--dsn", dsn, *more]
    return [sys.executable, "-m", "tailrace", *words]


class Filled(NamedTuple):
    messages: int  # that were new
    notes: list[str]


def fill(bootstrap: str, dsn: str, topics: str = "") -> Filled:
    """Write what there is now, in this process."""
    from tailrace.pipeline import queue_to_postgres

    notes: list[str] = []
    count = queue_to_postgres(bootstrap, dsn=dsn, topics=topics, available_now=True, on_note=notes.append)
    return Filled(count, notes)


def run_sink(bootstrap: str, dsn: str, *more: str, **variables: str) -> tuple[int, str]:
    """Exit code and standard error."""
    done = subprocess.run(
        command(bootstrap, dsn, *more), capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip
    return done.returncode, done.stderr


@contextmanager
def following(words: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A sink at work, which is killed at the end."""
    sink = subprocess.Popen(words)
    try:
        yield sink
    finally:
        sink.kill()
        sink.wait()


@contextmanager
def killed_in_a_transaction(words: list[str], queue: str) -> Iterator[None]:
    """Kill a sink at the end that is about to insert messages."""
    import psycopg

    with psycopg.connect(queue) as connection:
        connection.execute("LOCK TABLE message IN SHARE MODE")
        with following(words):
            yield
            waiting = "SELECT 1 FROM pg_locks WHERE relation = 'message'::regclass AND NOT granted"
            until(lambda: bool(rows(queue, waiting)))


TABLES: Sequence[str] = ("topic", "broker", "producer", "consumer", "message")


def contents(dsn: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables, but for what changes with every run: when brokers were last seen."""
    found = {table: rows(dsn, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES if table != "message"}
    found["broker"] = [(number, address, alive) for number, address, alive, _ in found["broker"]]
    found["message"] = rows(dsn, 'SELECT * FROM message ORDER BY topic_id, "partition", "offset"')
    return found
