"""The checksum of content: the same however records are cut into pieces, another for any change."""

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.client.visible_batches import select_visible
from tailrace.pipeline.arrow.columns import decode
from tailrace.pipeline.histories.checksum import ContentChecksum
from tailrace.pipeline.histories.layout import to_table
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tests.properties.record_strategies import several


def table_of(new: list[NewRecord]) -> pa.Table:
    columns = decode(select_visible(build_batch(new)), headers=True)
    assert columns is not None
    return to_table(columns, 0)


def checksum(*tables: pa.Table) -> int:
    content = ContentChecksum()
    for table in tables:
        content.add(table)
    return content.value


@given(several, st.data())
@settings(max_examples=60)
def test_it_does_not_depend_on_pieces(new: list[NewRecord], data: st.DataObject) -> None:
    whole = table_of(new)
    cut = data.draw(st.integers(1, len(new)))
    pieces = [whole.slice(0, cut), whole.slice(cut)] if cut < len(new) else [whole]
    assert checksum(*pieces) == checksum(whole)
    assert checksum(pa.concat_tables(pieces)) == checksum(whole)


@given(several, st.data())
@settings(max_examples=60)
def test_any_change_shows(new: list[NewRecord], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(new) - 1))
    field = data.draw(st.sampled_from(["key", "value", "headers", "timestamp"]))
    one = new[place]
    changed: dict[str, Any] = {
        "key": (one.key or b"") + b"x",
        "value": None if one.value is not None else b"",
        "headers": (*one.headers, ("h", None)),
        "timestamp": one.timestamp // 2 + 1 if one.timestamp != 1 else 2,
    }
    other = [*new[:place], one._replace(**{field: changed[field]}), *new[place + 1 :]]
    assert checksum(table_of(other)) != checksum(table_of(new))
