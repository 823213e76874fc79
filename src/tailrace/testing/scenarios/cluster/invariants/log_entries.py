"""The batches of a log, read past the broker: straight from the bytes that its simulated disk holds.

So looking costs no draw of chance, and changes nothing in the history that is looked at.
"""

import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.log.file_names import SEGMENT_SUFFIX
from tailrace.log.log import Log
from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.records.header import read_header
from tailrace.testing.simulation.file_content import FileContent
from tailrace.testing.simulation.storage import Storage


class Entry(NamedTuple):
    """One batch: where it stands, who wrote it, and two fingerprints."""

    base: int
    last: int
    epoch: int
    crc: int  # of what its producer sent
    fingerprint: int  # of all its bytes
    producer_id: int
    producer_epoch: int
    sequence: int  # of its first record

    def __str__(self) -> str:
        producer = f", producer {self.producer_id} from {self.sequence}" if self.producer_id >= 0 else ""
        return f"{self.base} to {self.last} of epoch {self.epoch}, checksum {self.crc:08x}{producer}"


class FilePosition(NamedTuple):
    """Where to read on: a batch's offset, its segment's base and its position there."""

    offset: int
    segment: int
    position: int


BEGINNING: Final = FilePosition(0, -1, 0)


def entries(storage: Storage, log: Log, place: FilePosition, limit: int) -> Iterator[tuple[Entry, FilePosition]]:
    """Batches from `place` on that lie below `limit`, each with where the next one begins."""
    for segment in list(log.segments):
        if segment.base < place.segment:
            continue
        content = storage.tree.find(segment.path_of(SEGMENT_SUFFIX))
        if not isinstance(content, FileContent):
            continue
        position = place.position if segment.base == place.segment else 0
        while position + BATCH_HEADER_BYTES <= segment.size:
            entry, size = _entry(content.visible, position)
            if entry.last >= limit:
                return
            position += size
            yield entry, FilePosition(entry.last + 1, segment.base, position)


def _entry(content: bytearray, position: int) -> tuple[Entry, int]:
    header = read_header(content, position)
    fingerprint = zlib.crc32(memoryview(content)[position : position + header.size])
    entry = Entry(
        header.base_offset,
        header.last_offset,
        header.leader_epoch,
        header.crc,
        fingerprint,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
    )
    return entry, max(header.size, BATCH_HEADER_BYTES)
