"""One record: `NewRecord` to be appended, and `Record` as read from a log."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

Headers = tuple[tuple[str, bytes | None], ...]  # in order; names may repeat

NO_TIMESTAMP: Final = -1


class RecordLike(Protocol):
    """A record that a batch can be built from."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def timestamp(self) -> int: ...


class NewRecord(NamedTuple):
    """A record to be appended; the log assigns its offset."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP  # milliseconds since 1970


class Record(NamedTuple):
    """A record of a log. Header names that are not UTF-8 keep their bytes as surrogate escapes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
