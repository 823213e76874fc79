"""Partition folders selected by the arguments of `tailrace log`: a data directory, a topic, or one folder.

Folders are named by topic id and partition number. Topic names are in the metadata log, a partition like the others: a
topic whose name cannot be read there is shown by its id.
"""

import os
from collections.abc import Iterator
from typing import Final, NamedTuple

from tailrace.cli.failure import Failed
from tailrace.cluster.records import RECORD_KINDS, TopicAdded
from tailrace.log.directory.inspect import stored_batches
from tailrace.log.directory.meta import META_NAME
from tailrace.log.file_names import SEGMENT_SUFFIX, offsets_named
from tailrace.model.faults import Fault
from tailrace.model.ids import Id, TopicPartition, parse_id, show_id
from tailrace.model.topics import METADATA_PARTITION, METADATA_TOPIC
from tailrace.ports.disk import Disk
from tailrace.wire.primitives import WireError
from tailrace.wire.stored import decode_record

WANTED: Final = "a data directory with --data-dir, or a partition folder"


class PartitionFolder(NamedTuple):
    path: str
    topic: str  # the topic's name, or its id if the metadata log has no name
    key: TopicPartition


def partition_folders(disk: Disk, what: str | None, data_dir: str, partition: int | None) -> list[PartitionFolder]:
    """`what` is a data directory, a partition folder, a topic name or a topic id; None: all in `data_dir`."""
    if what is not None and os.path.isdir(what):
        folder = what.rstrip("/")
        if not disk.exists(f"{folder}/{META_NAME}"):
            return [_single(disk, folder)]
        data_dir, what = folder, None
    if what is not None and "/" in what:  # a path: topic names have no slash
        raise Failed(f"{what} {'is a file' if os.path.exists(what) else 'does not exist'}.\nName {WANTED}.")
    if not os.path.isdir(data_dir):
        raise Failed(f"{data_dir} {'is a file' if os.path.exists(data_dir) else 'does not exist'}.\nName {WANTED}.")
    if not disk.exists(f"{data_dir}/{META_NAME}"):
        raise Failed(f"{data_dir} is not a data directory: it has no {META_NAME}.\nName {WANTED}.")
    found = [one for one in _all(disk, data_dir) if what in (None, one.topic, show_id(one.key.topic_id))]
    if not found:
        raise Failed(f"{data_dir} has no partition of topic {what!r}.\n`tailrace log verify` lists its partitions.")
    if partition is not None:
        found = [one for one in found if one.key.partition == partition]
        if not found:
            raise Failed(
                f"{data_dir} has no partition {partition} of {what or 'any topic'}.\n"
                "`tailrace log verify` lists its partitions."
            )
    return found


def data_dir_of(disk: Disk, what: str | None, data_dir: str) -> str:
    """The data directory of these partitions, which holds the metadata and the lock."""
    if what is None or not os.path.isdir(what):
        return data_dir.rstrip("/")
    folder = what.rstrip("/")
    if not disk.exists(f"{folder}/{META_NAME}"):
        folder = os.path.dirname(os.path.abspath(folder))
    if not disk.exists(f"{folder}/{META_NAME}"):
        raise Failed(f"{what} is not in a data directory: its parent has no {META_NAME}.\nName {WANTED}.")
    return folder


def _all(disk: Disk, data_dir: str) -> list[PartitionFolder]:
    names = _topic_names(disk, data_dir)
    keys = [key for name in disk.names(data_dir) if (key := _key(name)) is not None]
    found = [PartitionFolder(f"{data_dir}/{key}", names.get(key.topic_id, show_id(key.topic_id)), key) for key in keys]
    return sorted(found, key=lambda one: (one.topic, one.key.partition))


def _single(disk: Disk, folder: str) -> PartitionFolder:
    key = _key(os.path.basename(os.path.abspath(folder)))
    if key is None and not offsets_named(disk.names(folder), SEGMENT_SUFFIX):
        raise Failed(f"{folder} is neither a data directory nor a partition folder.\nName {WANTED}.")
    if key is None:  # a copy of a partition folder under another name
        return PartitionFolder(folder, folder, TopicPartition(Id(bytes(16)), 0))
    names = _topic_names(disk, os.path.dirname(os.path.abspath(folder)))
    return PartitionFolder(folder, names.get(key.topic_id, show_id(key.topic_id)), key)


def _key(name: str) -> TopicPartition | None:
    """The partition of a folder name; None if it is not the name of a partition folder."""
    topic_id, _, number = name.rpartition("-")
    try:
        return TopicPartition(parse_id(topic_id), int(number))
    except ValueError:
        return None


def _topic_names(disk: Disk, data_dir: str) -> dict[Id, str]:
    names = {METADATA_PARTITION.topic_id: METADATA_TOPIC}
    names.update({one.topic_id: one.name for one in metadata_records(disk, data_dir) if isinstance(one, TopicAdded)})
    return names


def metadata_records(disk: Disk, data_dir: str) -> Iterator[object]:
    """The records of the metadata log that can be read, in log order."""
    folder = f"{data_dir}/{METADATA_PARTITION}"
    if not disk.exists(folder):
        return
    for batch in stored_batches(disk, folder):
        if batch.problem is not None or batch.header is None or batch.header.is_control:
            continue
        try:
            yield from [decode_record(RECORD_KINDS, record.value or b"") for record in batch.records()]
        except (Fault, WireError):
            continue  # `tailrace log verify` reports the damage
