"""Which record kinds and versions lie in a broker's own logs: read from its files, while it runs or not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import unpack_from
from typing import Final

from tailrace.cluster.records import RECORD_KINDS, TopicAdded
from tailrace.groups.records import KINDS
from tailrace.log.directory.inspect import stored_batches
from tailrace.model.ids import TopicPartition, show_id
from tailrace.model.topics import METADATA_TOPIC_ID, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tailrace.ports import system_ports
from tailrace.records.record import Record
from tailrace.wire.primitives import read_uvarint
from tailrace.wire.stored import decode_record

METADATA: Final = str(TopicPartition(METADATA_TOPIC_ID, 0))

Kind = tuple[str, int]  # the name of a record's class, and the version it is written in


def kinds_in(data_dir: Path) -> dict[Kind, int]:
    """How often each kind and version stands in the metadata log and in the coordinators' logs of a broker."""
    found: dict[Kind, int] = {}
    for kind in _all_kinds(data_dir):
        found[kind] = found.get(kind, 0) + 1
    return found


def unreadable_to(declared: Mapping[str, int], data_dir: Path) -> list[Kind]:
    """The kinds and versions in a broker's own logs that a release cannot read, given its newest version of each."""
    return [(name, version) for name, version in kinds_in(data_dir) if version > declared.get(name, -1)]


def _all_kinds(data_dir: Path) -> Iterator[Kind]:
    topics: dict[str, str] = {}
    for record in _records(data_dir / METADATA):
        kind = _metadata_kind(record.value or b"")
        if kind[0] == TopicAdded.__name__:
            added = decode_record(RECORD_KINDS, record.value or b"")
            topics[added.name] = show_id(added.topic_id)
        yield kind
    for topic, kind_of in ((OFFSETS_TOPIC, _group_kind), (TRANSACTIONS_TOPIC, _transaction_kind)):
        for folder in data_dir.glob(f"{topics[topic]}-*") if topic in topics else ():
            for record in _records(folder):
                if record.value is not None:  # a tombstone has no version
                    yield kind_of(record)


def _records(folder: Path) -> Iterator[Record]:
    for batch in stored_batches(system_ports().disk, str(folder)):
        if batch.problem is None and batch.header is not None and not batch.header.is_control:
            yield from batch.records()


def _metadata_kind(value: bytes) -> Kind:
    view = memoryview(value)
    _, position = read_uvarint(view, 0)
    number, position = read_uvarint(view, position)
    version, _ = read_uvarint(view, position)
    cls = RECORD_KINDS.get(number)
    return (f"unknown type {number}" if cls is None else cls.__name__), version


def _group_kind(record: Record) -> Kind:
    (key_type,), (version,) = unpack_from(">h", record.key or b""), unpack_from(">h", record.value or b"")
    return (KINDS[key_type][1].__name__ if key_type in KINDS else f"unknown key {key_type}"), version


def _transaction_kind(record: Record) -> Kind:
    return "TransactionLogValue", unpack_from(">h", record.value or b"")[0]
