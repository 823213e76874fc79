"""Read all numbers of all records at once: offsets, timestamps, and the positions of keys, values and headers.

The rules are those of `records/opened.py`: every field lies within its record, offsets increase and stay within their
batch, and timestamps fit 64 bits. A record that breaks a rule makes its batch corrupt.
"""

from dataclasses import dataclass

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.pipeline.arrow.record_positions import RecordPositions
from tailrace.pipeline.arrow.varints import read_varints
from tailrace.records.header import LOG_APPEND_TIME_BIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Positions and sizes of byte fields; size -1 is null."""

    start: np.ndarray
    size: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    offset: np.ndarray
    timestamp: np.ndarray  # milliseconds since 1970
    timestamp_type: np.ndarray  # 0: CreateTime, 1: LogAppendTime
    key: Spans
    value: Spans
    header_counts: np.ndarray
    headers_at: np.ndarray  # position of each record's first header


def read_fields(found: RecordPositions) -> Fields:
    try:
        return _read_fields(found)
    except IndexError:
        raise CorruptBatch("the last record of the batch is cut short") from None


def _read_fields(found: RecordPositions) -> Fields:
    data = np.frombuffer(found.data, np.uint8)
    size, at = read_varints(data, found.at)
    _demand(size > 0, "a record has an impossible length")
    later, at = read_varints(data, at + 1)  # skips the attributes byte: no attributes are defined
    delta, at = read_varints(data, at)
    key, at = read_spans(data, at, found.end)
    value, at = read_spans(data, at, found.end)
    counts, at = read_varints(data, at)
    _demand((counts >= 0) & (counts <= (found.end - at) // 2), "a record has more headers than bytes")
    _demand((counts > 0) | (at == found.end), "a record does not end where its length says")
    timestamp, kind = _timestamps(found, later)
    return Fields(
        offset=_offsets(found, delta),
        timestamp=timestamp,
        timestamp_type=kind,
        key=key,
        value=value,
        header_counts=counts,
        headers_at=at,
    )


def read_spans(data: np.ndarray, at: np.ndarray, end: np.ndarray) -> tuple[Spans, np.ndarray]:
    """The byte field at each of these positions, and the positions after the fields."""
    size, start = read_varints(data, at)
    _demand((size >= -1) & (size <= end - start), "a field is longer than its record")
    return Spans(start=start, size=size), start + np.maximum(size, 0)


def _offsets(found: RecordPositions, delta: np.ndarray) -> np.ndarray:
    base = np.array([header.base_offset for header in found.headers], np.int64)
    last = np.array([header.last_offset_delta for header in found.headers], np.int64)
    _demand((delta >= 0) & (delta <= last[found.batch]), "an offset lies outside its batch")
    same_batch = found.batch[1:] == found.batch[:-1]
    _demand((delta[1:] > delta[:-1]) | ~same_batch, "offsets do not rise within a batch")
    return base[found.batch] + delta


def _timestamps(found: RecordPositions, later: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    base = np.array([header.base_timestamp for header in found.headers], np.int64)[found.batch]
    appended = np.array([bool(header.attributes & LOG_APPEND_TIME_BIT) for header in found.headers])[found.batch]
    stamp = base + later
    overflow = ((base ^ stamp) & (later ^ stamp)) < 0
    _demand(~overflow | appended, "a timestamp does not fit 64 bits")
    if appended.any():
        newest = np.array([header.max_timestamp for header in found.headers], np.int64)[found.batch]
        stamp = np.where(appended, newest, stamp)
    return stamp, appended.astype(np.int32)


def _demand(holds: np.ndarray, otherwise: str) -> None:
    if not holds.all():
        raise CorruptBatch(f"{otherwise} (record {int(np.flatnonzero(~holds)[0])} of those read)")
