"""The tables in one database: making and checking them, and writing, each call in one transaction."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tailrace.model.ids import PartitionName
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.postgres.queue import tables
from tailrace.pipeline.postgres.queue.reading import Message, Registered, Topic

if TYPE_CHECKING:
    from psycopg import Connection

DATABASE: Final = "d_queue"
MAKING_LOCK: Final = 0x7461696C72616365  # of PostgreSQL's advisory locks: two sinks may start at once
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

TopicPart = tuple[str, int]  # the id of a topic, and a partition


class Read(NamedTuple):
    """A piece of a partition to be written, and the offset after it."""

    topic: Topic
    place: PartitionName
    messages: Sequence[Message]
    end: int


class Size(NamedTuple):
    """Where a consumer is with each partition of its topic."""

    consumer: int
    topic_id: str
    partitions: list[int]
    starts: list[int]
    ahead: list[int]  # messages after the start that it has had


def moment(at_ms: int | None) -> datetime | None:
    """None for a time that Python cannot represent."""
    if at_ms is None:
        return None
    try:
        return EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return None


def payload(value: bytes) -> tuple[str | None, bytes | None]:
    """A message as text, or else as bytes: PostgreSQL's text has no NUL."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None, value
    return (None, value) if "\0" in text else (text, None)


class QueueDatabase:
    def __init__(self, connection: "Connection") -> None:
        """The connection commits each statement that is in no transaction."""
        self._connection = connection

    # Tables

    def prepare(self, cluster_id: str) -> None:
        """Make the tables that are missing, and check that all are ours, and of this cluster."""
        from psycopg.errors import InsufficientPrivilege

        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING_LOCK,))
            for table in tables.TABLES:
                if not self._is_there(table):
                    try:
                        self._connection.execute(tables.create_sql(table))
                    except InsufficientPrivilege as error:
                        raise PipelineFailed(self._no_permission(table, error)) from None
                self._demand_columns(table)
            self._demand_cluster(cluster_id)

    def _is_there(self, table: str) -> bool:
        (found,) = self._connection.execute("SELECT to_regclass(%s)", (table,)).fetchone() or (None,)
        return found is not None

    def _no_permission(self, table: str, error: Exception) -> str:
        of = self._connection.info
        why = str(error).strip().split("\n")[0]
        return (
            f"user {of.user} may not make table {table} in database {of.dbname}: {why}. Its owner can allow it: "
            f"GRANT USAGE, CREATE ON SCHEMA public TO {of.user}; or let tables be made in a schema of their own: "
            "--dsn '… options=-csearch_path=SCHEMA'"
        )

    def _demand_columns(self, table: str) -> None:
        described = self._connection.execute(f"SELECT * FROM {table} WHERE false").description or ()
        there = [one.name for one in described]
        missing = [name for name in tables.column_names(table) if name not in there]
        if missing:
            raise PipelineFailed(
                f"database {self._connection.info.dbname} has a table {table} of another program: it has no column "
                f"{', '.join(missing)}. Give another database, or a schema: --dsn '… options=-csearch_path=SCHEMA'"
            )

    def _demand_cluster(self, cluster_id: str) -> None:
        found = self._connection.execute("SELECT id FROM tailrace_cluster").fetchone()
        if found is None:
            self._connection.execute("INSERT INTO tailrace_cluster VALUES (%s)", (cluster_id,))
        elif found[0] != cluster_id:
            raise PipelineFailed(
                f"the tables in database {self._connection.info.dbname} are of cluster {found[0]}, and the brokers "
                f"are of cluster {cluster_id}: give another database, or another schema"
            )

    # Progress

    def progress(self) -> dict[TopicPart, int]:
        """By topic and partition, the next offset."""
        rows = self._connection.execute('SELECT topic_id, "partition", next_offset FROM tailrace_progress').fetchall()
        return {(topic, partition): offset for topic, partition, offset in rows}

    def demand_same(self, topic: Topic) -> None:
        """Raise if rows are there of an earlier topic of this name."""
        sql = "SELECT topic_id FROM tailrace_progress WHERE topic = %s AND topic_id <> %s"
        if self._connection.execute(sql, (topic.name, topic.id)).fetchone() is not None:
            raise PipelineFailed(
                f"topic {topic.name} was deleted and made again, so ids of producers and consumers begin anew: give "
                "another database, or drop the tables"
            )

    def begin(self, topic: Topic, begins: Mapping[PartitionName, int]) -> None:
        """Note where reading of these partitions begins, unless it has begun."""
        rows = [(topic.name, topic.id, place.partition, offset) for place, offset in begins.items()]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(tables.BEGIN_PARTITION, rows)

    # Writing

    def write_topics(self, topics: Sequence[Topic]) -> None:
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(tables.UPSERT_TOPIC, [(one.id, one.name, one.partitions) for one in topics])
            cursor.execute(tables.DELETE_OTHER_TOPICS, ([one.id for one in topics],))

    def write_registrations(self, topic: Topic, found: Sequence[Registered], end: int) -> None:
        producers = [one for one in found if one.registration.kind == "producer"]
        consumers = [one for one in found if one.registration.kind == "consumer"]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(
                tables.INSERT_PRODUCER,
                [(of.id, of.topic, moment(at_ms), of.sequencer) for of, at_ms in producers],
            )
            cursor.executemany(tables.INSERT_CONSUMER, [(of.id, of.topic, moment(at_ms)) for of, at_ms in consumers])
            cursor.execute(tables.ADVANCE, (end, topic.id, 0))

    def write_messages(self, pieces: Sequence[Read]) -> int:
        """How many of the messages are new in the table."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(tables.LOCK_PROGRESS)
            cursor.execute(tables.MAKE_STAGING)
            with cursor.copy(tables.COPY_STAGING) as copy:
                for piece in pieces:
                    for one in piece.messages:
                        copy.write_row(_staged(piece.topic, one))
            cursor.execute(tables.INSERT_MESSAGES)
            (count,) = cursor.fetchone() or (0,)
            cursor.executemany(tables.ADVANCE, [(one.end, one.topic.id, one.place.partition) for one in pieces])
        return int(count)

    def registered_topics(self) -> list[str]:
        """The topics that producers and consumers have registered for."""
        rows = self._connection.execute("SELECT topic FROM producer UNION SELECT topic FROM consumer").fetchall()
        return sorted(name for (name,) in rows)

    def consumers(self, topics: Sequence[str] | None, ids: Sequence[int]) -> list[tuple[int, str]]:
        """Those of these topics, or with these ids, with their topics; all if no topics are given."""
        if topics is None:
            rows = self._connection.execute("SELECT id, topic FROM consumer").fetchall()
        else:
            sql = "SELECT id, topic FROM consumer WHERE topic = ANY(%s) OR id = ANY(%s)"
            rows = self._connection.execute(sql, (list(topics), list(ids))).fetchall()
        return [(number, name) for number, name in rows]

    def see_brokers(self, alive: Mapping[int, str], now_ms: int, others: Mapping[int, int]) -> None:
        """`others`: by broker, when it was last seen."""
        rows: list[tuple[Any, ...]] = [(one, address, True, moment(now_ms)) for one, address in alive.items()]
        rows += [(one, None, False, moment(at_ms)) for one, at_ms in others.items() if one not in alive]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(tables.SEE_BROKER, rows)
            cursor.execute(tables.OTHER_BROKERS_ARE_GONE, (list(alive),))

    def see_clients(self, producers: Mapping[int, int], consumers: Mapping[int, int]) -> None:
        """By id, when they were last seen."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            for sql, seen in ((tables.SEE_PRODUCER, producers), (tables.SEE_CONSUMER, consumers)):
                cursor.executemany(sql, [(moment(at_ms), number) for number, at_ms in seen.items()])

    def write_sizes(self, sizes: Iterable[Size]) -> None:
        rows = [(one.partitions, one.starts, one.ahead, one.topic_id, one.consumer) for one in sizes]
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.executemany(tables.SET_SIZE, rows)


def _staged(topic: Topic, one: Message) -> tuple[Any, ...]:
    record = one.record
    text, other = payload(record.value or b"")
    return (
        topic.id, one.place.partition, record.offset, topic.name, one.sequencer, moment(record.timestamp), text, other
    )  # fmt: skip
