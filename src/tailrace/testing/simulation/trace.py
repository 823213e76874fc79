"""The history of a run as a hash: two runs with equal digests are the same run.

A line holds the virtual time, the machine, the kind of event and its fields. Fields are numbers, text and bytes, whose
`repr` is the same in every Python process. The kinds are part of the digest: renaming one changes every digest.
Lines are kept only on request, because a long run has millions of them.
"""

import zlib
from hashlib import blake2b


class Trace:
    def __init__(self, *, keep: bool) -> None:
        self.lines: list[str] | None = [] if keep else None
        self._hash = blake2b(digest_size=16)

    def add(self, now: float, machine: str, kind: str, fields: tuple[object, ...]) -> None:
        line = f"{now!r} {machine} {kind} {fields!r}\n"
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line[:-1])

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def fingerprint(data: bytes | bytearray | memoryview) -> int:
    """A short stand-in for bytes in a line of the trace."""
    return zlib.crc32(data)
