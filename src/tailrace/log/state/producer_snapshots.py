"""Snapshots of what producers had sent: the files `….producers`, named by the offset below which they are complete."""

from collections.abc import Iterable

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.file_names import PRODUCERS_SUFFIX, named, offsets_named
from tailrace.log.state.producers import ProducerStates
from tailrace.ports.disk import Disk, read_file


def last_snapshot(
    disk: Disk, folder: str, names: Iterable[str], upto: int, expiration_ms: int
) -> tuple[int, ProducerStates] | None:
    """The last that can be read at `upto` or below, and where it stands."""
    for offset in reversed(offsets_named(names, PRODUCERS_SUFFIX)):
        if offset <= upto:
            try:
                data = read_file(disk, f"{folder}/{named(offset, PRODUCERS_SUFFIX)}")
                return offset, ProducerStates.load(data, expiration_ms)
            except Unreadable:
                continue
    return None
