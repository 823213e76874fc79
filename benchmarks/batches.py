"""Record batches built before the clock starts, so that the broker and not the client is measured.

A batch is built once and its bytes are sent unchanged. The single-record batches of an idempotent producer differ only
in producer id, epoch, sequence and checksum, which are patched ahead of time.
"""

import os
import struct
import time
from typing import Final

from crc32c import crc32c

from tailrace.records.build import build_batch
from tailrace.records.header import CHECKED_FROM, CRC_AT
from tailrace.records.record import NewRecord

PRODUCER_AT: Final = 43
PRODUCER_LAYOUT: Final = struct.Struct(">qhi")  # producer id, producer epoch, base sequence


def random_batch(*, records: int, value_bytes: int, transactional: bool = False) -> bytearray:
    """An uncompressed batch with the current time, of random, incompressible values, without a producer id."""
    now_ms = time.time_ns() // 1_000_000
    made = [NewRecord(value=os.urandom(value_bytes), timestamp=now_ms) for _ in range(records)]
    return build_batch(made, transactional=transactional)


def name_producer(batch: bytearray, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Stamp the batch with producer id, epoch and `sequence`, as an idempotent producer would send it."""
    PRODUCER_LAYOUT.pack_into(batch, PRODUCER_AT, producer_id, producer_epoch, sequence)
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))
