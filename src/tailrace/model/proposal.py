"""Proposals: a coordinator's result for a request: the records to append, and the answer once they are committed.

Records may be part of a producer's transaction; then all records of the proposal are.
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
    """A marker in the log: the records of the producer's transaction are committed or aborted."""

    producer_id: int
    committed: bool


@frozen(kw_only=False)
class Proposal(Generic[T]):
    answer: T
    records: Sequence[object] = ()  # appended and replayed in this order, all or none of them
