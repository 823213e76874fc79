"""Filters as bounds, without Spark: nothing that could match is left out, and little else is kept."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

from tailrace.pipeline.kafka.cluster import TopicPartition
from tailrace.pipeline.source.filter_bounds import bounds_of

MEANINGS: dict[type[Any], Any] = {
    EqualTo: operator.eq, GreaterThan: operator.gt, GreaterThanOrEqual: operator.ge, LessThan: operator.lt,
    LessThanOrEqual: operator.le, In: lambda number, values: number in values,
}  # fmt: skip
columns = st.sampled_from(["partition", "offset"])
numbers = st.integers(-2, 9)
several = st.lists(numbers | st.none(), max_size=3).map(tuple)
compared = st.sampled_from([kind for kind in MEANINGS if kind is not In])
filters = st.builds(lambda kind, column, value: kind((column,), value), compared, columns, numbers) | st.builds(
    lambda column, values: In((column,), values), columns, several
)


def matches(one: Any, row: dict[str, int]) -> bool:
    return bool(MEANINGS[type(one)](row[one.attribute[0]], one.value))


@given(st.lists(filters, max_size=4))
def test_no_row_that_matches_is_left_out(told: list[Filter]) -> None:
    bounds = bounds_of(told)
    for partition in range(8):
        for offset in range(8):
            if all(matches(one, {"partition": partition, "offset": offset}) for one in told):
                assert bounds.admits(TopicPartition("orders", partition))
                assert bounds.first_offset <= offset < bounds.end_offset


@pytest.mark.parametrize(
    ("told", "wanted"),
    [
        ([GreaterThan(("partition",), 2), LessThanOrEqual(("partition",), 4)], [3, 4]),
        ([GreaterThanOrEqual(("partition",), 2), LessThan(("partition",), 4)], [2, 3]),
        ([In(("partition",), (1, 3, 5)), LessThan(("partition",), 4)], [1, 3]),
    ],
)
def test_partitions_between_two_numbers(told: list[Filter], wanted: list[int]) -> None:
    bounds = bounds_of(told)
    assert [number for number in range(8) if bounds.admits(TopicPartition("orders", number))] == wanted


def test_offsets_out_of_a_list_lie_between_its_ends() -> None:
    bounds = bounds_of([In(("offset",), (7, 3, None, 5))])
    assert (bounds.first_offset, bounds.end_offset) == (3, 8)
