"""Decode headers in bulk: the first header of every record, then the second header of records with two, and so on.

So the number of rounds is the header count of the record with the most headers, not the count of all headers. The
position of a header in the flat list follows from where the list of its record starts.
"""

from typing import Final

import numpy as np
import pyarrow as pa

from tailrace.model.faults import CorruptBatch
from tailrace.pipeline.arrow.copy_spans import copy_spans
from tailrace.pipeline.arrow.fields import Fields, Spans, read_spans
from tailrace.pipeline.arrow.record_positions import RecordPositions

HEADER_TYPE: Final = pa.struct([("key", pa.binary()), ("value", pa.binary())])


def header_lists(found: RecordPositions, fields: Fields) -> pa.Array:
    """For each record, the list of its headers; empty if the record has none."""
    begins = np.zeros(len(fields.header_counts) + 1, np.int64)
    np.cumsum(fields.header_counts, out=begins[1:])
    names, values = _spans(found, fields, begins)
    flat = pa.StructArray.from_arrays([copy_spans(found.data, names), copy_spans(found.data, values)], ["key", "value"])
    return pa.ListArray.from_arrays(pa.array(begins.astype(np.int32)), flat)


def _spans(found: RecordPositions, fields: Fields, begins: np.ndarray) -> tuple[Spans, Spans]:
    data = np.frombuffer(found.data, np.uint8)
    total = int(begins[-1])
    names = Spans(start=np.zeros(total, np.int64), size=np.zeros(total, np.int64))
    values = Spans(start=np.zeros(total, np.int64), size=np.zeros(total, np.int64))
    those = np.flatnonzero(fields.header_counts)
    at, nth = fields.headers_at[those], 0
    try:
        while len(those):
            place = begins[those] + nth
            for into in (names, values):
                span, at = read_spans(data, at, found.end[those])
                into.start[place], into.size[place] = span.start, span.size
            nth += 1
            more = fields.header_counts[those] > nth
            if not (more | (at == found.end[those])).all():
                raise CorruptBatch("a record does not end where its length says")
            those, at = those[more], at[more]
    except IndexError:
        raise CorruptBatch("the last record of the batch is cut short") from None
    if (names.size < 0).any():
        raise CorruptBatch("a record header without a name")
    return names, values
