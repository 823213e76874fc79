"""Turn filters into bounds on topics, partitions, offsets and timestamps that contain every row that could match."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from tailrace.pipeline.kafka.cluster import TopicPartition

NO_END: Final = 2**63 - 1


@dataclass(slots=True, kw_only=True)
class FilterBounds:
    topics: tuple[Any, ...] | None = None  # None: any topic
    partitions: tuple[Any, ...] | None = None
    first_partition: int = 0
    end_partition: int = NO_END
    first_offset: int = 0
    end_offset: int = NO_END
    earliest_ms: int | None = None

    def admits(self, partition: TopicPartition) -> bool:
        number = partition.partition
        return (
            (self.topics is None or partition.topic in self.topics)
            and (self.partitions is None or number in self.partitions)
            and self.first_partition <= number < self.end_partition
        )


def bounds_of(filters: Iterable[Filter]) -> FilterBounds:
    bounds = FilterBounds()
    for one in filters:
        if isinstance(one, EqualTo | In | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual):
            _narrow(bounds, one, one.attribute[0])
    return bounds


def _narrow(bounds: FilterBounds, one: Filter, column: str) -> None:
    match column, one:
        case "topic", EqualTo() | In():
            bounds.topics = _both(bounds.topics, _values(one))
        case "partition", EqualTo() | In():
            bounds.partitions = _both(bounds.partitions, _values(one))
        case "partition", _:
            first, end = _span(one)
            bounds.first_partition = max(bounds.first_partition, first)
            bounds.end_partition = min(bounds.end_partition, end)
        case "offset", _:
            first, end = _span(one)
            bounds.first_offset, bounds.end_offset = max(bounds.first_offset, first), min(bounds.end_offset, end)
        case "timestamp", EqualTo() | GreaterThan() | GreaterThanOrEqual():
            _narrow_time(bounds, _ms(one.value))


def _span(one: Any) -> tuple[int, int]:
    """The range of numbers that could match: first (inclusive) and end (exclusive)."""
    match one:
        case GreaterThan() | GreaterThanOrEqual():
            return one.value + isinstance(one, GreaterThan), NO_END
        case LessThan() | LessThanOrEqual():
            return 0, one.value + isinstance(one, LessThanOrEqual)
        case _:
            known = [value for value in _values(one) if value is not None]  # e.g. IN (1, NULL)
            return (min(known), max(known) + 1) if known else (0, NO_END)


def _narrow_time(bounds: FilterBounds, earliest_ms: int) -> None:
    """Apply a lower bound after 1970 only: records without a timestamp have -1, and no lookup by time finds them."""
    if earliest_ms > 0:
        bounds.earliest_ms = max(bounds.earliest_ms or 0, earliest_ms)


def _values(one: Any) -> tuple[Any, ...]:
    return tuple(one.value) if isinstance(one, In) else (one.value,)


def _both(known: tuple[Any, ...] | None, more: tuple[Any, ...]) -> tuple[Any, ...]:
    return more if known is None else tuple(value for value in known if value in more)


def _ms(value: datetime) -> int:
    """A time in milliseconds, rounded down: a bound may be too early, never too late."""
    aware = value if value.tzinfo is not None else value.astimezone(UTC)
    return int(aware.timestamp() * 1000)
