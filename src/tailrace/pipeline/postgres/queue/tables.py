"""The tables: their columns, and the statements that fill them.

`message.number` counts the messages of a partition as they are written, and `tailrace_progress.messages` is the last
number. So how many messages follow an offset is one look into an index, whatever retention and transactions have made
of the offsets.
"""

from typing import Final

from tailrace.pipeline.postgres.columns import quoted

TABLES: Final = {
    "topic": (
        "id text PRIMARY KEY", "name text NOT NULL", "partitions integer NOT NULL", "deleted_at timestamptz",
    ),
    "broker": ("id integer PRIMARY KEY", "address text", "alive boolean NOT NULL", "last_seen timestamptz"),
    "producer": (
        "id bigint PRIMARY KEY", "topic text NOT NULL", "registered_at timestamptz", "last_seen timestamptz",
        "sequencer bigint NOT NULL UNIQUE",
    ),
    "consumer": (
        "id bigint PRIMARY KEY", "topic text NOT NULL", "registered_at timestamptz", "last_seen timestamptz",
        "size bigint",
    ),
    "message": (
        "topic text NOT NULL", "topic_id text", '"partition" integer', '"offset" bigint', "number bigint NOT NULL",
        "producer_id bigint", "sent_at timestamptz", "message text", "message_bytes bytea",
        'PRIMARY KEY (topic_id, "partition", "offset")',
    ),
    "tailrace_progress": (
        "topic text NOT NULL", "topic_id text", '"partition" integer', "next_offset bigint NOT NULL",
        "messages bigint NOT NULL", 'PRIMARY KEY (topic_id, "partition")',
    ),
    "tailrace_cluster": ("id text PRIMARY KEY",),
}  # fmt: skip

STAGING_COLUMNS: Final = (
    'topic_id text, "partition" integer, "offset" bigint, topic text, sequencer bigint, sent_at timestamptz, '
    "message text, message_bytes bytea"
)
MAKE_STAGING: Final = f"CREATE TEMPORARY TABLE tailrace_fresh ({STAGING_COLUMNS}) ON COMMIT DROP"
COPY_STAGING: Final = "COPY pg_temp.tailrace_fresh FROM STDIN"

# Until the transaction ends no other sink writes messages, or reads how far this one is.
LOCK_PROGRESS: Final = "LOCK TABLE tailrace_progress IN EXCLUSIVE MODE"
BEGIN_PARTITION: Final = "INSERT INTO tailrace_progress VALUES (%s, %s, %s, %s, 0) ON CONFLICT DO NOTHING"
ADVANCE: Final = (
    'UPDATE tailrace_progress SET next_offset = greatest(next_offset, %s) WHERE topic_id = %s AND "partition" = %s'
)

# Rows that another sink has written meanwhile are left out.
INSERT_MESSAGES: Final = """
WITH inserted AS (
    INSERT INTO message (
        topic, topic_id, "partition", "offset", number, producer_id, sent_at, message, message_bytes
    )
    SELECT f.topic, f.topic_id, f."partition", f."offset",
        p.messages + row_number() OVER (PARTITION BY f.topic_id, f."partition" ORDER BY f."offset"),
        r.id, f.sent_at, f.message, f.message_bytes
    FROM pg_temp.tailrace_fresh f
    JOIN tailrace_progress p ON p.topic_id = f.topic_id AND p."partition" = f."partition"
    LEFT JOIN producer r ON r.sequencer = f.sequencer
    WHERE f."offset" >= p.next_offset
    RETURNING topic_id, "partition"
), counted AS (
    SELECT topic_id, "partition", count(*) AS messages FROM inserted GROUP BY 1, 2
), advanced AS (
    UPDATE tailrace_progress p SET messages = p.messages + c.messages
    FROM counted c WHERE p.topic_id = c.topic_id AND p."partition" = c."partition"
    RETURNING c.messages
)
SELECT coalesce(sum(messages), 0) FROM advanced"""

INSERT_PRODUCER: Final = (
    "INSERT INTO producer (id, topic, registered_at, sequencer) VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO NOTHING"
)
INSERT_CONSUMER: Final = (
    "INSERT INTO consumer (id, topic, registered_at) VALUES (%s, %s, %s) ON CONFLICT (id) DO NOTHING"
)
SEE_PRODUCER: Final = "UPDATE producer SET last_seen = greatest(last_seen, %s) WHERE id = %s"
SEE_CONSUMER: Final = "UPDATE consumer SET last_seen = greatest(last_seen, %s) WHERE id = %s"

UPSERT_TOPIC: Final = (
    "INSERT INTO topic (id, name, partitions) VALUES (%s, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET partitions = excluded.partitions, deleted_at = NULL "
    "WHERE topic.partitions <> excluded.partitions OR topic.deleted_at IS NOT NULL"
)
DELETE_OTHER_TOPICS: Final = "UPDATE topic SET deleted_at = now() WHERE deleted_at IS NULL AND id <> ALL(%s)"

SEE_BROKER: Final = (
    "INSERT INTO broker VALUES (%s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET alive = excluded.alive, "
    "address = coalesce(excluded.address, broker.address), last_seen = greatest(broker.last_seen, excluded.last_seen)"
)
OTHER_BROKERS_ARE_GONE: Final = "UPDATE broker SET alive = false WHERE alive AND id <> ALL(%s)"

# Of each partition: where the consumer is, and how many later messages it has had all the same.
SET_SIZE: Final = """
UPDATE consumer SET size = (
    SELECT sum(greatest(0, p.messages - coalesce(f.number - 1, p.messages) - w.ahead))
    FROM unnest(%s::integer[], %s::bigint[], %s::bigint[]) AS w ("partition", start, ahead)
    JOIN tailrace_progress p ON p.topic_id = %s AND p."partition" = w."partition"
    LEFT JOIN LATERAL (
        SELECT m.number FROM message m
        WHERE m.topic_id = p.topic_id AND m."partition" = p."partition" AND m."offset" >= w.start
        ORDER BY m."offset" LIMIT 1
    ) f ON true
) WHERE id = %s"""


def create_sql(table: str) -> str:
    return f"CREATE TABLE IF NOT EXISTS {quoted(table)} ({', '.join(TABLES[table])})"


def column_names(table: str) -> list[str]:
    """The columns that the statements above use."""
    return [one.split()[0].strip('"') for one in TABLES[table] if not one.startswith("PRIMARY KEY")]
