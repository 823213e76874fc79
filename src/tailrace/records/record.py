"""One record: as somebody wants it written, and as it stands in the log."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

Headers = tuple[tuple[str, bytes | None], ...]  # in the order given; a name may come twice

NO_TIMESTAMP: Final = -1


class RecordLike(Protocol):
    """What a batch is built from."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def timestamp(self) -> int: ...


class NewRecord(NamedTuple):
    """A record on its way to a log: the log will give it an offset."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int = NO_TIMESTAMP  # milliseconds since 1970


class Record(NamedTuple):
    """A record of a log. Header names that are not UTF-8 keep their bytes as lone surrogates."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
