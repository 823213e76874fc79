"""Rows of `tailrace log dump`: one per batch, or one per record."""

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from tailrace.cli.log.folders import PartitionFolder
from tailrace.cli.messages.message_format import named_bytes
from tailrace.cluster.records import RECORD_KINDS
from tailrace.log.directory.inspect import Stored, stored_batches
from tailrace.model.faults import CorruptBatch, InvalidBatch
from tailrace.model.ids import show_id
from tailrace.model.topics import METADATA_PARTITION
from tailrace.ports import Disk
from tailrace.records.compress import COMPRESSIONS
from tailrace.records.control import Marker
from tailrace.records.header import NO_PRODUCER, BatchHeader
from tailrace.records.record import Record
from tailrace.wire.primitives import WireError
from tailrace.wire.stored import decode_record

Row = dict[str, object]


def batch_rows(disk: Disk, folder: PartitionFolder, offset: int) -> Iterator[Row]:
    """The batches from the one that contains `offset`; for damaged bytes, a row with the problem."""
    for batch in stored_batches(disk, folder.path):
        where = _place(folder) | {"file": batch.file.rpartition("/")[2], "position": batch.position}
        if batch.header is None or batch.problem is not None:
            yield where | {"problem": batch.problem or "unreadable"}
        elif batch.header.last_offset >= offset:
            yield where | _header(batch.header) | {"kind": _kind(batch, batch.header)}


def record_rows(disk: Disk, folder: PartitionFolder, offset: int) -> Iterator[Row]:
    """The records from `offset`; for records that cannot be read, a row with the problem."""
    for batch in stored_batches(disk, folder.path):
        if batch.problem is None and batch.header is not None and batch.header.last_offset < offset:
            continue
        records, problem = _open(batch)
        for record in records:
            if record.offset >= offset:
                yield _place(folder) | _record(record, is_metadata=folder.key == METADATA_PARTITION)
        if batch.header is not None and (marker := batch.marker()) is not None:
            yield _place(folder) | _marker(batch.header, marker)
        if problem is not None:
            at = {"file": batch.file.rpartition("/")[2], "position": batch.position}
            yield _place(folder) | at | {"problem": problem}


def _open(batch: Stored) -> tuple[list[Record], str | None]:
    if batch.problem is not None:
        return [], batch.problem
    if batch.header is not None and batch.header.is_control:
        return [], None  # control records have no user data
    try:
        return batch.records(), None
    except (CorruptBatch, InvalidBatch) as fault:
        return [], str(fault)


def _place(folder: PartitionFolder) -> Row:
    return {"topic": folder.topic, "partition": folder.key.partition}


def _header(header: BatchHeader) -> Row:
    has_producer = header.producer_id != NO_PRODUCER
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records,
        "bytes": header.size,
        "epoch": header.leader_epoch,
        "time": _time(header.max_timestamp),
        "compression": COMPRESSIONS[header.compression] if header.compression < len(COMPRESSIONS) else "?",
        "producer_id": header.producer_id if has_producer else None,
        "sequence": header.base_sequence if has_producer else None,
        "problem": None,
    }


def _kind(batch: Stored, header: BatchHeader) -> str:
    if (marker := batch.marker()) is not None:
        return "commit" if marker.committed else "abort"
    return "control" if header.is_control else "transactional" if header.is_transactional else "data"


def _marker(header: BatchHeader, marker: Marker) -> Row:
    return {
        "offset": header.base_offset,
        "time": _time(header.max_timestamp),
        "kind": "commit" if marker.committed else "abort",
        "producer_id": header.producer_id,
    }


def _record(record: Record, *, is_metadata: bool) -> Row:
    row = {"offset": record.offset, "time": _time(record.timestamp)}
    value: Row = {**named_bytes("value", record.value)}
    if is_metadata:
        try:
            value = {"value": _metadata_text(decode_record(RECORD_KINDS, record.value or b""))}
        except WireError as error:
            value = {"problem": str(error)}
    headers = [{"name": name, **named_bytes("value", data)} for name, data in record.headers]
    return row | named_bytes("key", record.key) | value | {"headers": headers}


def _metadata_text(record: Any) -> str:
    """A metadata record as text, with ids in the form used for folder names."""
    values = ((one.name, getattr(record, one.name)) for one in fields(record))
    shown = (f"{name}={show_id(value) if isinstance(value, bytes) else repr(value)}" for name, value in values)
    return f"{type(record).__name__}({', '.join(shown)})"


def _time(timestamp_ms: int) -> str | None:
    if timestamp_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return str(timestamp_ms)
