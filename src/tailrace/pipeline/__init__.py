"""Topics as Spark DataFrames, and a history in Parquet whose integrity can be verified.

    spark = session()
    spark.read.format("tailrace").option("kafka.bootstrap.servers", "127.0.0.1:9092").option("subscribe", "orders")

The pipeline talks to brokers only over Kafka's protocol, so it works with Apache Kafka too. Spark, Arrow and numpy are
imported on first use of one of these names, never by `import tailrace` or by starting a broker.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tailrace.pipeline.analysis.job import analyze
    from tailrace.pipeline.data_source import register
    from tailrace.pipeline.declarative_project import init
    from tailrace.pipeline.histories.archive import archive
    from tailrace.pipeline.histories.audit import audit
    from tailrace.pipeline.histories.reading import history
    from tailrace.pipeline.json_rows import parse_json
    from tailrace.pipeline.jvm.session import session
    from tailrace.pipeline.postgres.job import to_postgres
    from tailrace.pipeline.postgres.queue.job import queue_to_postgres
    from tailrace.pipeline.replaying.job import replay
    from tailrace.pipeline.upkeep.compact import compact
    from tailrace.pipeline.upkeep.vacuum import vacuum

__all__ = [
    "analyze", "archive", "audit", "compact", "history", "init", "parse_json", "queue_to_postgres", "register",
    "replay", "session", "to_postgres", "vacuum",
]  # fmt: skip

_HOMES: Final = MappingProxyType(  # name to the module that defines it
    {
        "analyze": "analysis.job",
        "archive": "histories.archive",
        "audit": "histories.audit",
        "compact": "upkeep.compact",
        "history": "histories.reading",
        "init": "declarative_project",
        "parse_json": "json_rows",
        "queue_to_postgres": "postgres.queue.job",
        "register": "data_source",
        "replay": "replaying.job",
        "session": "jvm.session",
        "to_postgres": "postgres.job",
        "vacuum": "upkeep.vacuum",
    }
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"tailrace.pipeline has no {name}; it has {', '.join(sorted(_HOMES))}")
    return getattr(import_module(f"tailrace.pipeline.{_HOMES[name]}"), name)
