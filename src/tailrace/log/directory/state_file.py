"""Small text files that are replaced as a whole: a header line with kind and version, the content, a checksum line.

    tailrace leader-epochs 1
    4 0
    7 1200
    crc32c 5bd1e995

The checksum covers every byte above its line, so a torn or altered file is recognised and never half believed.
"""

from collections.abc import Iterable

from tailrace.records.crc import crc32c


class Unreadable(ValueError):
    """The file has a wrong checksum, version or content; the message says which."""


def write_state(kind: str, version: int, lines: Iterable[str]) -> bytes:
    body = "".join(f"{line}\n" for line in (f"tailrace {kind} {version}", *lines)).encode()
    return body + f"crc32c {crc32c(body):08x}\n".encode()


def read_state(kind: str, version: int, data: bytes) -> list[str]:
    """The content lines, as they were passed to `write_state`."""
    body, mark, checksum = data.rpartition(b"crc32c ")
    if not mark or checksum != f"{crc32c(body):08x}\n".encode():
        raise Unreadable(f"{kind}: the checksum line is missing or does not match")
    first, *lines = body.decode().splitlines()
    if first != f"tailrace {kind} {version}":
        raise Unreadable(f"{kind}: the first line is {first!r}; this release reads version {version}")
    return lines
