"""A transactional producer, whichever way a client spells it. Refusals are raised as `Refused`."""

from collections.abc import Mapping
from typing import Protocol


class Transactor(Protocol):
    """One producer under one transactional id; it has the id when it is there."""

    def begin(self) -> None: ...

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """Send, and wait until all are taken."""

    def commit_offsets(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """As part of the transaction."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...
