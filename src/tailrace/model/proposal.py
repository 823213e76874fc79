"""What a pure coordinator answers to a request: records to append, and what to say once they are committed.

Records may be part of a producer's transaction. Then all of a proposal are.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from tailrace.model.frozen import frozen

T = TypeVar("T")


@frozen(kw_only=False)
class InTransaction:
    """A record that counts only if its producer's transaction is committed."""

    producer_id: int
    producer_epoch: int
    record: object


@frozen(kw_only=False)
class TransactionEnded:
    """A marker in the log: what the producer has written in its transaction counts now, or never will."""

    producer_id: int
    committed: bool


@frozen(kw_only=False)
class Proposal(Generic[T]):
    answer: T
    records: Sequence[object] = ()  # appended and replayed in this order, all or none
