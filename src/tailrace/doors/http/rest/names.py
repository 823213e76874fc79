"""Shapes and parameters that many operations have."""

from typing import Final

from tailrace.doors.http.rest.operation import Parameter
from tailrace.doors.http.rest.records import AUTO, FORMS
from tailrace.doors.http.rest.schema import INT32_MAX, Either, Flag, Mapped, Object, Text, Whole
from tailrace.model.limits import REST_PAGE_MAX, REST_RECORDS_MAX, REST_WAIT_MAX_MS, TOPIC_NAME_MAX_CHARS

TOPIC_NAME: Final = Text(
    min_chars=1,
    max_chars=TOPIC_NAME_MAX_CHARS,
    pattern="[a-zA-Z0-9._-]+",
    wants="a topic name: letters, digits, '.', '_' and '-'",
    example="orders",
)
GROUP_NAME: Final = Text(min_chars=1, max_chars=TOPIC_NAME_MAX_CHARS, example="billing")
SETTINGS: Final = Mapped(of=Text(nullable=True, max_chars=10_000), help="Settings by name; null resets one.", most=200)
SET_SETTINGS: Final = Mapped(of=Text(max_chars=10_000), help="Settings by name.", most=200)
PARTITION: Final = Whole(most=INT32_MAX)
OFFSET: Final = Whole()

TOPIC: Final = Parameter(name="topic", place="path", required=True, shape=TOPIC_NAME, help="The topic.")
GROUP: Final = Parameter(name="group", place="path", required=True, shape=GROUP_NAME, help="The group.")
QUEUE: Final = Parameter(
    name="queue", place="path", required=True, shape=TOPIC_NAME, help="The queue: the name of its topic."
)
PARTITION_OF_PATH: Final = Parameter(
    name="partition", place="path", required=True, shape=PARTITION, help="The partition, from 0."
)
FORM: Final = Parameter(
    name="form",
    shape=Text(choices=FORMS),
    default=AUTO,
    help="How keys and values are written: auto is text, or base64 where the bytes are not UTF-8; "
    "json is a JSON value where they are one; base64 is always base64.",
)
LIMIT: Final = Parameter(
    name="limit", shape=Whole(least=1, most=REST_RECORDS_MAX), default=100, help="The most records of the answer."
)
WAIT: Final = Parameter(
    name="wait_ms",
    shape=Whole(most=REST_WAIT_MAX_MS),
    default=0,
    help="How long to wait while there is nothing: a long poll.",
)
PAGE: Final = Parameter(
    name="limit", shape=Whole(least=1, most=REST_PAGE_MAX), default=REST_PAGE_MAX, help="The most names of the answer."
)
AFTER: Final = Parameter(
    name="after",
    shape=Text(max_chars=TOPIC_NAME_MAX_CHARS),
    default="",
    help="Begin after this name: `next` of before.",
)
PREFIX: Final = Parameter(
    name="prefix", shape=Text(max_chars=TOPIC_NAME_MAX_CHARS), default="", help="Only names that begin with this."
)
INTERNAL: Final = Parameter(name="internal", shape=Flag(), default=False, help="Whether to list internal ones, too.")
NEXT: Final = Text(nullable=True, help="Where the next page begins (`after`); null: there is none.")
PLACE: Final = Either(
    of=(Text(choices=("earliest", "latest")), OFFSET), wants="earliest, latest or an offset", help="An offset."
)
OFFSET_OF: Final = Object(
    name="PartitionOffset",
    fields={
        "topic": TOPIC_NAME,
        "partition": PARTITION,
        "offset": Whole(help="Of the record that comes next."),
    },
)
