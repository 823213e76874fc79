"""Small text files that must be whole or not there: a version line, lines, a checksum line.

    tailrace leader-epochs 1
    4 0
    7 1200
    crc32c 5bd1e995

The checksum covers everything above its line.
"""

from collections.abc import Iterable

from tailrace.records.crc import crc32c


class Unreadable(ValueError):
    """A state file that is not what it should be; the message says how."""


def write_state(kind: str, version: int, lines: Iterable[str]) -> bytes:
    body = "".join(f"{line}\n" for line in (f"tailrace {kind} {version}", *lines)).encode()
    return body + f"crc32c {crc32c(body):08x}\n".encode()


def read_state(kind: str, version: int, data: bytes) -> list[str]:
    """The lines that `write_state` was given."""
    body, mark, checksum = data.rpartition(b"crc32c ")
    if not mark or checksum != f"{crc32c(body):08x}\n".encode():
        raise Unreadable(f"{kind}: the checksum at its end is missing or wrong")
    first, *lines = body.decode().splitlines()
    if first != f"tailrace {kind} {version}":
        raise Unreadable(f"{kind}: its first line is {first!r}, this release reads version {version}")
    return lines
