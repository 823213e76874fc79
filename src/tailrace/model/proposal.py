"""What a pure coordinator answers to a request: records to append, and what to say once they are committed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Proposal(Generic[T]):
    answer: T
    records: Sequence[object] = ()  # appended and replayed in this order, all or none
