"""What coordinators of transactions say no with."""

from typing import ClassVar

from tailrace.model.fault import Fault


class ProducerFenced(Fault):
    """Another producer has taken the transactional id."""


class UnknownProducerId(Fault):
    """The transactional id is not used by this producer id, or by nobody."""


class ConcurrentTransactions(Fault):
    """The transaction before is still being ended."""

    retry: ClassVar[bool] = True


class InvalidTransactionTimeout(Fault): ...


class TransactionNotFound(Fault): ...


class NotInTransaction(Fault):
    """A partition takes no part in the transaction, which can only be aborted."""


class UnstableOffset(Fault):
    """A transaction that is not ended yet has committed another offset."""

    retry: ClassVar[bool] = True


class NotAttempted(Fault):
    """Nothing was done for this partition, because another one of the request was refused."""


class TopicNotAllowed(Fault):
    """Clients may not write to this topic."""


AnyTransactionFault = (
    ProducerFenced
    | UnknownProducerId
    | ConcurrentTransactions
    | InvalidTransactionTimeout
    | TransactionNotFound
    | NotInTransaction
    | UnstableOffset
    | NotAttempted
    | TopicNotAllowed
)
