"""The load of the pipeline benchmarks: batches of random records, and their checksum."""

import os
import time
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from tailrace.model.limits import MiB
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord

KEY_BYTES: Final = 16
PARTITIONS: Final = 4
DIFFERENT_BYTES: Final = 8 * MiB  # of batches before they repeat: more than the window of a compressor


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    topic: str
    record_bytes: int  # key and value
    per_batch: int
    batches: int  # in each partition

    @property
    def records(self) -> int:
        return self.per_batch * self.batches * PARTITIONS

    @property
    def varieties(self) -> int:
        return min(self.batches, 1 + DIFFERENT_BYTES // (self.record_bytes * self.per_batch))


def one_batch(load: Load) -> tuple[bytes, int]:
    """A batch of random keys and values, and the sum of the CRC-32 of both."""
    now_ms = int(time.time() * 1000)
    new = [
        NewRecord(os.urandom(load.record_bytes - KEY_BYTES), os.urandom(KEY_BYTES), timestamp=now_ms + number // 100)
        for number in range(load.per_batch)
    ]
    return bytes(build_batch(new)), sum(crc32(one.value or b"") + crc32(one.key or b"") for one in new)
