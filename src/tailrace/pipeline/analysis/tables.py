"""The queries on a history; Spark answers each with a small table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS_SHOWN: Final = 20
POINTS_SHOWN: Final = 200  # per time line: more would not be visible in a plot
MINUTE_S: Final = 60
VALUE_SIZE: Final = "coalesce(octet_length(value), 0)"
KEY_TEXT: Final = "coalesce(try_validate_utf8(cast(key as string)), concat('0x', hex(key)))"  # not every key is text
REASON_HEADERS: Final = ("dead-letter-reason", "quarantine-reason", "__connect.errors.exception.class.name")


def header(name: str) -> str:
    """SQL for the value of the first header with this name, as text."""
    return f"make_valid_utf8(cast(get(filter(headers, h -> h.key = encode('{name}', 'utf-8')), 0).value as string))"


SENT_AT: Final = f"try_cast({header('sent-at')} as bigint)"  # when the producer created the record, in ms


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def result_tables(frame: "DataFrame", step_s: int) -> list[ResultTable]:
    """The tables about the topics of a history; time series have steps of `step_s` seconds."""
    queries: Sequence[Callable[[DataFrame], ResultTable]] = (
        _topics, partial(_throughput, step=step_s), _sizes, _keys, _delays, _dead_letters,
    )  # fmt: skip
    return [query(frame) for query in queries]


def step_of(frame: "DataFrame") -> int:
    """The shortest step in seconds for `POINTS_SHOWN` points; from one minute on, rounded up to whole minutes."""
    span = frame.selectExpr("unix_timestamp(max(timestamp)) - unix_timestamp(min(timestamp)) as s").first()
    length = max(1, -(-int((span and span.s) or 0) // POINTS_SHOWN))
    return length if length < MINUTE_S else -(-length // MINUTE_S) * MINUTE_S


def _topics(frame: "DataFrame") -> ResultTable:
    found = frame.groupBy("topic").agg(
        *expressions("count(*) as records", f"sum({VALUE_SIZE}) as bytes", "min(timestamp) as first",
                      "max(timestamp) as last", "approx_count_distinct(key) as keys")
    )  # fmt: skip
    return to_result_table("Topics", found.orderBy("topic"))


def _throughput(frame: "DataFrame", step: int) -> ResultTable:
    """Records and bytes per second."""
    timed = frame.groupBy(expressions(f"timestamp_seconds(unix_timestamp(timestamp) div {step} * {step}) as time")[0])
    found = timed.agg(
        *expressions(f"count(*) / {step} as records_a_second", f"sum({VALUE_SIZE}) / {step} as bytes_a_second")
    )
    return to_result_table(f"Throughput, in steps of {step} s", found.orderBy("time"))


def _sizes(frame: "DataFrame") -> ResultTable:
    shares = "array(0.5, 0.9, 0.99, 1.0)"
    sized = frame.selectExpr("topic", f"{VALUE_SIZE} as size")
    found = (
        sized.groupBy("topic")
        .agg(*expressions(f"percentile_approx(size, {shares}) as p"))
        .selectExpr("topic", "p[0] as median", "p[1] as p90", "p[2] as p99", "p[3] as largest")
    )
    return to_result_table("Sizes of values, in bytes", found.orderBy("topic"))


def _keys(frame: "DataFrame") -> ResultTable:
    counted = frame.where("key is not null").groupBy("topic", "key").agg(*expressions("count(*) as records"))
    total = "sum(records) over (partition by topic)"
    found = counted.selectExpr(
        "topic", f"{KEY_TEXT} as key", "records", f"round(100 * records / {total}, 2) as percent"
    )
    return to_result_table("Most frequent keys", found.orderBy("records", ascending=False).limit(KEYS_SHOWN))


def _delays(frame: "DataFrame") -> ResultTable:
    """The latency of records that have a header `sent-at` (creation time in milliseconds since 1970)."""
    timed = frame.selectExpr("topic", f"unix_millis(timestamp) - {SENT_AT} as late").where("late is not null")
    found = timed.groupBy("topic").agg(*expressions("percentile_approx(late, array(0.5, 0.9, 0.99, 1.0)) as p"))
    found = found.selectExpr("topic", "p[0] as median", "p[1] as p90", "p[2] as p99", "p[3] as longest")
    return to_result_table("Latency from the header sent-at to the record's timestamp, in ms", found.orderBy("topic"))


def _dead_letters(frame: "DataFrame") -> ResultTable:
    """Dead letters by the reason header: that of Tailrace, `parse_json`, or Kafka Connect."""
    headers = (header(name) for name in REASON_HEADERS)
    found = frame.selectExpr("topic", f"coalesce({', '.join(headers)}) as reason").where("reason is not null")
    counted = found.groupBy("topic", "reason").agg(*expressions("count(*) as records"))
    return to_result_table("Dead letters by reason", counted.orderBy("records", ascending=False))


def expressions(*texts: str) -> list[Any]:
    from pyspark.sql import functions

    return [functions.expr(text) for text in texts]


def to_result_table(title: str, frame: "DataFrame") -> ResultTable:
    return ResultTable(title=title, columns=tuple(frame.columns), rows=tuple(tuple(row) for row in frame.collect()))
