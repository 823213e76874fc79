"""What happened, as a digest: two runs with the same one are the same run.

Every line is (virtual time, node, kind, fields); fields are numbers, text and bytes, whose `repr` is the same in every
Python process. Lines are kept only on demand: a long run has millions.
"""

import zlib
from hashlib import blake2b


class Trace:
    def __init__(self, *, keep: bool) -> None:
        self.lines: list[str] | None = [] if keep else None
        self._hash = blake2b(digest_size=16)

    def add(self, now: float, node: str, kind: str, fields: tuple[object, ...]) -> None:
        line = f"{now!r} {node} {kind} {fields!r}\n"
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line[:-1])

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def fingerprint(data: bytes | bytearray | memoryview) -> int:
    """Bytes in a line of the trace, cheaply."""
    return zlib.crc32(data)
