"""Messages, as every client writes and reads them: what is sent and how, what is read back and how."""

from dataclasses import dataclass
from typing import Literal, Protocol

Compression = Literal["none", "gzip", "snappy", "lz4", "zstd"]
Acks = Literal[0, 1, "all"]
Headers = tuple[tuple[str, bytes | None], ...]
COMPRESSIONS: tuple[Compression, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
END = -1  # a first offset: whatever comes next


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    timestamp_ms: int | None = None  # None: the client's now


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What is read back."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int
    append_time: bool | None  # the broker's time, not the sender's; None: the client does not say

    @property
    def content(self) -> tuple[bytes | None, bytes | None, Headers]:
        return self.key, self.value, self.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read: first offset, how long a fetch may wait, how many bytes it may bring, what to do when lost."""

    start: int = 0
    wait_ms: int = 500
    fetch_bytes: int | None = None
    reset: Literal["earliest", "latest", "none"] = "none"
    committed_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """How to write: the settings of the producer. `max_bytes` bounds a message or a request, as the client does."""

    compression: Compression = "none"
    acks: Acks = "all"
    idempotent: bool = False
    max_bytes: int | None = None


AS_USUAL = Sending()


class Reader(Protocol):
    """One partition being read."""

    def take(self, count: int) -> list[Received]:
        """The next `count` records, within the deadline."""
