"""The columns of a history with Spark's names and types: as DDL for a reader, as JSON for Delta's metadata.

They are plain text and need neither Spark nor Arrow, so that a command can inspect a history before it loads either.
"""

import json
from typing import Final

SPARK_DDL: Final = (
    "key binary, value binary, partition int, offset bigint, timestamp timestamp, timestampType int, "
    "headers array<struct<key:binary,value:binary>>, producerId bigint, producerEpoch int, sequence int, "
    "topic string, date date"
)
SPARK_NAMES: Final = {"bigint": "long", "int": "integer"}  # SQL type names to the names in Spark's JSON schema


def spark_schema_json() -> str:
    """The columns as Delta's metadata lists them."""
    pair = {"type": "struct", "fields": [_field("key", "binary"), _field("value", "binary")]}
    lists = {"type": "array", "elementType": pair, "containsNull": True}
    named = [part.strip().split(" ", 1) for part in SPARK_DDL.replace("binary,value:", "binary;value:").split(",")]
    columns = [(name, lists if name == "headers" else SPARK_NAMES.get(kind, kind)) for name, kind in named]
    return json.dumps({"type": "struct", "fields": [_field(name, kind) for name, kind in columns]})


def _field(name: str, kind: object) -> dict[str, object]:
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}
