"""The batches of a log, read directly from the bytes on the simulated disk, without the broker or the disk port.

So observing a log draws no random number, adds no line to the trace, and does not change the history.
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
    """One batch: its offsets, its producer, and two checksums."""

    base: int
    last: int
    epoch: int
    crc: int  # in its header, so over what its producer sent
    fingerprint: int  # of all its bytes
    producer_id: int
    producer_epoch: int
    sequence: int  # of its first record

    def __str__(self) -> str:
        producer = f", producer {self.producer_id} from {self.sequence}" if self.producer_id >= 0 else ""
        return f"{self.base} to {self.last} of epoch {self.epoch}, checksum {self.crc:08x}{producer}"


class FilePosition(NamedTuple):
    """Where the next batch begins: its offset, its segment's base offset and its position in that segment."""

    offset: int
    segment: int
    position: int


BEGINNING: Final = FilePosition(0, -1, 0)


def entries(storage: Storage, log: Log, place: FilePosition, limit: int) -> Iterator[tuple[Entry, FilePosition]]:
    """The batches from `place` on that end below the offset `limit`, each with the place of the next one."""
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
