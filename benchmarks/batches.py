"""Record batches made before the clock starts, so that the broker and not the client is measured.

A batch is built once and its bytes are sent as they are. For an idempotent producer each single-record batch is the
same but for producer id, epoch, sequence and checksum, which are patched ahead of time.
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
    """An uncompressed batch, stamped now, of values that nothing on the way could shrink; of no producer."""
    now_ms = time.time_ns() // 1_000_000
    made = [NewRecord(value=os.urandom(value_bytes), timestamp=now_ms) for _ in range(records)]
    return build_batch(made, transactional=transactional)


def name_producer(batch: bytearray, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Make the batch the one that an idempotent producer sends at `sequence`."""
    PRODUCER_LAYOUT.pack_into(batch, PRODUCER_AT, producer_id, producer_epoch, sequence)
    struct.pack_into(">I", batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))
