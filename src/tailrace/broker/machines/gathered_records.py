"""The records of several requests, gathered into as few record batches as possible.

All records of a request are in the same batch: after a crash the log has all of them or none. Records of a transaction
have a batch of their own, because the header of a batch names the producer.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from tailrace.model.proposal import InTransaction
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord

Encode = Callable[[Any, int, int], NewRecord]  # of a record, a level of metadata.version, and a timestamp in ms

NO_PRODUCER: Final = (-1, -1)
OVERHEAD_MAX_BYTES: Final = 32  # of a record in a batch, besides key and value


class GatheredRecords:
    def __init__(self, encode: Encode, level: int, now_ms: int, batch_max_bytes: int) -> None:
        """A batch with the records of more than one request has at most `batch_max_bytes`."""
        self._encode = encode
        self._level = level
        self._now_ms = now_ms
        self._batch_max_bytes = batch_max_bytes
        self._batches: list[tuple[tuple[int, int], list[NewRecord]]] = []  # producer id and epoch, and the records
        self._last_bytes = 0  # of the last batch
        self.count = 0

    def add(self, records: Sequence[Any]) -> None:
        """Add the records of a request."""
        first, producer = records[0], NO_PRODUCER
        if isinstance(first, InTransaction):
            producer = first.producer_id, first.producer_epoch
            records = [one.record for one in records]
        encode, level, now_ms = self._encode, self._level, self._now_ms
        encoded = [encode(one, level, now_ms) for one in records]
        size = sum([len(one.key or b"") + len(one.value or b"") + OVERHEAD_MAX_BYTES for one in encoded])
        batches = self._batches
        if batches and batches[-1][0] == producer and self._last_bytes + size <= self._batch_max_bytes:
            batches[-1][1].extend(encoded)
            self._last_bytes += size
        else:
            batches.append((producer, encoded))
            self._last_bytes = size
        self.count += len(encoded)

    def batches(self) -> Iterator[bytearray]:
        for (producer_id, producer_epoch), records in self._batches:
            yield build_batch(
                records,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                transactional=producer_id != NO_PRODUCER[0],
            )
