"""What the sink of the queue's tables says when it cannot work, and what it does when the cluster changes."""

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tailrace.client.admin import delete_topics
from tailrace.model.ids import PartitionName
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.postgres.queue.reading import Message, QueueReader
from tailrace.records.record import NewRecord
from tailrace.testing import Broker
from tests.pipeline.queue_tables import command, execute, fill, named, own_database, rows, run_sink
from tests.pipeline.topics import make_topic, numbered, shorten, write
from tests.unit.doors.http.test_http_queue_libraries import until

SOURCE = Path(__file__).parents[2] / "src"
HIDDEN = """import importlib.util, sys
class Hidden:
    def find_spec(name, path=None, target=None):
        if name in {0}:
            raise ModuleNotFoundError(name)
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in {0} else found(name, *more)
sys.meta_path.insert(0, Hidden)
"""


@pytest.fixture
def queue(dsn: str) -> Iterator[str]:
    with own_database(dsn) as found:
        yield found


def said(broker: Broker, dsn: str, *more: str, **variables: str) -> str:
    """What the command says that fails."""
    code, text = run_sink(broker.bootstrap, dsn, "--available-now", *more, **variables)
    assert code == 1, text
    assert "Traceback" not in text
    return text


def test_a_database_that_does_not_exist(broker: Broker, dsn: str) -> None:
    assert 'database "d_queue_2" does not exist; `createdb` makes one' in said(broker, named(dsn, "d_queue_2"))


def test_a_user_who_may_make_no_tables(broker: Broker, dsn: str, queue: str, topic: str) -> None:
    user = topic.replace("-", "_")
    execute(queue, f"CREATE ROLE {user} LOGIN", f"CREATE SCHEMA own_{user} AUTHORIZATION {user}")
    as_user = queue.replace("user=tester", f"user={user}")
    text = said(broker, as_user)
    assert f"user {user} may not make table topic" in text
    assert f"GRANT USAGE, CREATE ON SCHEMA public TO {user}" in text
    fill(broker.bootstrap, f"{as_user} options=-csearch_path=own_{user}")  # as it advises
    assert rows(queue, f"SELECT count(*) FROM own_{user}.message") == [(0,)]
    execute(queue, f"DROP OWNED BY {user}", f"DROP ROLE {user}")


def test_a_user_who_may_write_and_make_nothing(broker: Broker, queue: str, topic: str) -> None:
    user = topic.replace("-", "_")
    fill(broker.bootstrap, queue)
    execute(
        queue, f"CREATE ROLE {user} LOGIN", f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO {user}"
    )  # fmt: skip
    as_user = queue.replace("user=tester", f"user={user}")
    assert "PostgreSQL refuses: permission denied for table" in said(broker, as_user)
    execute(queue, f"GRANT UPDATE ON ALL TABLES IN SCHEMA public TO {user}")
    fill(broker.bootstrap, as_user)
    execute(queue, f"DROP OWNED BY {user}", f"DROP ROLE {user}")


def test_tables_of_another_program(broker: Broker, queue: str) -> None:
    execute(queue, "CREATE TABLE producer (id serial PRIMARY KEY, topic_name text)")
    assert "a table producer of another program: it has no column topic, registered_at" in said(broker, queue)
    assert rows(queue, "SELECT to_regclass('message')") == [(None,)]


def test_tables_of_another_cluster(broker: Broker, queue: str) -> None:
    fill(broker.bootstrap, queue)
    execute(queue, "UPDATE tailrace_cluster SET id = 'another'")
    assert "are of cluster another, and the brokers are of cluster " in said(broker, queue)


def test_without_psycopg(broker: Broker, queue: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDDEN.format(("psycopg",)))
    text = said(broker, queue, PYTHONPATH=f"{tmp_path}:{SOURCE}")
    assert "this sink needs psycopg, which is not installed: pip install 'tailrace[postgres]'" in text


def test_spark_is_not_needed(broker: Broker, queue: str, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDDEN.format(("pyspark", "pyarrow", "numpy")))
    code, text = run_sink(broker.bootstrap, queue, "--available-now", PYTHONPATH=f"{tmp_path}:{SOURCE}", PATH="")
    assert (code, text) == (0, "wrote 0 messages\n")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--table", "t"], "--table does not go together with --queue-tables"),
        (["--topics", "nowhere-1"], "there is no topic nowhere-1"),
    ],
)
def test_options_that_do_not_fit(broker: Broker, queue: str, more: Sequence[str], text: str) -> None:
    assert text in run_sink(broker.bootstrap, queue, *more)[1]


def test_a_topic_that_is_made_again(broker: Broker, cluster: Cluster, queue: str, topic: str) -> None:
    for payload in (b"old", b"new"):
        make_topic(cluster, topic)
        write(cluster, topic, [NewRecord(payload), NewRecord(b"same")])
        assert fill(broker.bootstrap, queue, topic).messages == 2
        cluster.run(delete_topics(cluster.core, [topic]))
    fill(broker.bootstrap, queue)
    found = rows(
        queue,
        'SELECT m.message FROM topic t JOIN message m ON m.topic_id = t.id ORDER BY t.deleted_at, m."offset"',
    )
    assert found == [("old",), ("same",), ("new",), ("same",)]
    assert rows(queue, f"SELECT count(*) FROM topic WHERE name = '{topic}' AND deleted_at IS NULL") == [(0,)]


def test_a_topic_that_is_made_again_while_it_is_read(
    broker: Broker, cluster: Cluster, queue: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, [NewRecord(b"old")])
    read = QueueReader.messages

    def read_late(reader: QueueReader, place: PartitionName, offset: int) -> tuple[list[Message], int]:
        monkeypatch.undo()
        cluster.run(delete_topics(cluster.core, [topic]))
        make_topic(cluster, topic)
        write(cluster, topic, [NewRecord(b"new")])
        return read(reader, place, offset)

    monkeypatch.setattr(QueueReader, "messages", read_late)
    assert fill(broker.bootstrap, queue, topic).messages == 1
    sql = f"SELECT t.deleted_at IS NULL, message FROM topic t LEFT JOIN message ON topic_id = id WHERE name = '{topic}'"
    assert sorted(rows(queue, sql), key=str) == [(False, None), (True, "new")]


def test_messages_that_are_deleted_before_they_are_read(
    broker: Broker, cluster: Cluster, queue: str, topic: str
) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(5))
    assert fill(broker.bootstrap, queue, topic).messages == 5
    write(cluster, topic, numbered(5, 5))
    shorten(cluster, topic, 7)
    assert fill(broker.bootstrap, queue, topic).notes == [
        f"offsets 5 to 6 of {topic}-0 were deleted before they were read"
    ]
    found = rows(queue, 'SELECT "offset", number FROM message ORDER BY 1')
    assert found == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (7, 6), (8, 7), (9, 8)]


def test_several_sinks_take_turns(broker: Broker, cluster: Cluster, queue: str, topic: str) -> None:
    make_topic(cluster, topic, 2)
    for number in range(2):
        write(cluster, topic, numbered(1000), partition=number)
    with ThreadPoolExecutor() as pool:
        filled = list(pool.map(lambda _: fill(broker.bootstrap, queue, topic), range(3)))
    assert sum(one.messages for one in filled) == 2000
    sql = 'SELECT "partition", count(*), min(number), max(number), count(DISTINCT number) FROM message GROUP BY 1'
    assert sorted(rows(queue, sql)) == [(0, 1000, 1, 1000, 1000), (1, 1000, 1, 1000, 1000)]


def test_a_database_that_goes_away_is_waited_for(broker: Broker, cluster: Cluster, queue: str, topic: str) -> None:
    make_topic(cluster, topic)
    write(cluster, topic, numbered(1))
    fill(broker.bootstrap, queue, topic)
    follow = command(broker.bootstrap, f"{queue} application_name=sink", "--topics", topic, "--every", "0.2")
    sink = subprocess.Popen(follow, stderr=subprocess.PIPE, text=True)
    try:
        write(cluster, topic, numbered(1))
        until(lambda: rows(queue, "SELECT count(*) FROM message") == [(2,)])
        execute(queue, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sink'")
        write(cluster, topic, numbered(1))
        until(lambda: rows(queue, "SELECT count(*) FROM message") == [(3,)])
    finally:
        sink.kill()
        _, text = sink.communicate()
    assert "PostgreSQL does not answer, trying again: " in text
