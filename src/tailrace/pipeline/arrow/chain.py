"""Where each record of a run of batches begins and ends.

Batches that are not compressed are walked where they stand; if one is, all are laid end to end in a run of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import batch_header_bytes
from tailrace.pipeline.arrow.walk import Walk
from tailrace.records.compress import decompress
from tailrace.records.header import BatchHeader, record_min_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    data: memoryview  # the bodies of all batches are in it
    at: np.ndarray  # of each record: where its length stands
    end: np.ndarray  # of each record: where the next begins, or the next batch
    batch: np.ndarray  # of each record: the number of its batch
    headers: tuple[BatchHeader, ...]


def chain(data: memoryview, batches: Sequence[tuple[int, BatchHeader]]) -> Chain:
    """Find the records of the batches that stand at these places of `data`."""
    headers = tuple(header for _, header in batches)
    bodies = [(place + batch_header_bytes, place + header.size) for place, header in batches]
    if any(header.compression for header in headers):
        data, bodies = _decompressed(data, bodies, headers)
    walk = Walk(data)
    for (start, end), header in zip(bodies, headers, strict=True):
        _check_count(header, end - start)
        walk.through(start, end, header.records)
    at = walk.places()
    counts = np.array([header.records for header in headers])
    ends = np.empty_like(at)
    ends[:-1] = at[1:]
    with_records = counts > 0
    ends[np.cumsum(counts)[with_records] - 1] = np.array([end for _, end in bodies])[with_records]
    return Chain(data=data, at=at, end=ends, batch=np.repeat(np.arange(len(headers)), counts), headers=headers)


def _decompressed(
    data: memoryview, bodies: Sequence[tuple[int, int]], headers: Sequence[BatchHeader]
) -> tuple[memoryview, list[tuple[int, int]]]:
    """The bodies end to end, and where each stands."""
    opened = [
        decompress(header.compression, data[start:end]) for (start, end), header in zip(bodies, headers, strict=True)
    ]
    ends = list(accumulate(map(len, opened)))
    return memoryview(b"".join(opened)), list(zip([0, *ends[:-1]], ends, strict=True))


def _check_count(header: BatchHeader, size: int) -> None:
    if not 0 <= header.records <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.records} records with last offset delta {header.last_offset_delta}")
    if header.records * record_min_bytes > size or (size and not header.records):
        raise CorruptBatch(f"{header.records} records cannot stand in {size} bytes")
