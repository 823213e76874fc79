"""Find where each record of a run of record batches starts and ends.

If no batch is compressed, all batches are scanned in place, as one run. If any batch is compressed, the bodies of all
batches are concatenated, decompressed, into new runs. A few compressed megabytes may expand to gigabytes, so the size
of such a run is limited: a batch that does not fit starts the next run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from tailrace.model.faults import CorruptBatch
from tailrace.model.limits import BATCH_HEADER_BYTES, DECODED_RUN_MAX_BYTES
from tailrace.pipeline.arrow.record_scan import RecordScan
from tailrace.records.compress import decompress
from tailrace.records.header import RECORD_MIN_BYTES, BatchHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """Record batches, decompressed, whose records can be scanned."""

    data: memoryview
    bodies: Sequence[tuple[int, int]]  # start and end of each batch body in `data`
    headers: tuple[BatchHeader, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPositions:
    data: memoryview  # contains the bodies of all batches
    at: np.ndarray  # per record: position of its length field
    end: np.ndarray  # per record: position of its end
    batch: np.ndarray  # per record: index of its batch
    headers: tuple[BatchHeader, ...]


def batch_runs(
    data: memoryview, batches: Sequence[tuple[int, BatchHeader]], max_bytes: int = DECODED_RUN_MAX_BYTES
) -> Iterator[BatchRun]:
    """The batches at the given positions in `data`. Decompressed runs have at most `max_bytes`, or a single batch."""
    bodies = [(place + BATCH_HEADER_BYTES, place + header.size) for place, header in batches]
    if not any(header.compression for _, header in batches):
        yield BatchRun(data=data, bodies=bodies, headers=tuple(header for _, header in batches))
        return
    opened: list[tuple[bytes, BatchHeader]] = []
    size = 0
    for (start, end), (_, header) in zip(bodies, batches, strict=True):
        body = decompress(header.compression, data[start:end])
        if opened and size + len(body) > max_bytes:
            yield _concatenated(opened)
            opened, size = [], 0
        opened.append((body, header))
        size += len(body)
    yield _concatenated(opened)


def _concatenated(opened: Sequence[tuple[bytes, BatchHeader]]) -> BatchRun:
    ends = list(accumulate(len(body) for body, _ in opened))
    return BatchRun(
        data=memoryview(b"".join(body for body, _ in opened)),
        bodies=list(zip([0, *ends[:-1]], ends, strict=True)),
        headers=tuple(header for _, header in opened),
    )


def find_records(run: BatchRun) -> RecordPositions:
    """Find the records of a run."""
    bodies, headers = run.bodies, run.headers
    scan = RecordScan(run.data)
    for (start, end), header in zip(bodies, headers, strict=True):
        _check_count(header, end - start)
        scan.scan_batch(start, end, header.records)
    at = scan.positions()
    counts = np.array([header.records for header in headers])
    ends = np.empty_like(at)
    ends[:-1] = at[1:]
    with_records = counts > 0
    ends[np.cumsum(counts)[with_records] - 1] = np.array([end for _, end in bodies])[with_records]
    return RecordPositions(
        data=run.data, at=at, end=ends, batch=np.repeat(np.arange(len(headers)), counts), headers=headers
    )


def _check_count(header: BatchHeader, size: int) -> None:
    if not 0 <= header.records <= header.last_offset_delta + 1:
        raise CorruptBatch(f"{header.records} records with last offset delta {header.last_offset_delta}")
    if header.records * RECORD_MIN_BYTES > size or (size and not header.records):
        raise CorruptBatch(f"{header.records} records cannot fit in {size} bytes")
