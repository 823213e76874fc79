"""What transactional clients did and saw: the writes and the outcome of each transaction, and what consumers read.

The outcome is what the client knows: a transaction that it did not ask to commit is aborted in any case; one that it
asked to commit is committed if the response said so, and otherwise unknown. At the end of a run the whole history is
checked in the manner of Jepsen's Kafka tests.
"""

from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.transaction_history import (
    Outcome,
    Reader,
    ReadRecord,
    Transaction,
    TransactionHistory,
    Write,
    violations,
)


class ClientTransaction:
    __slots__ = ("name", "outcome", "writes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = Outcome.ABORTED  # until the client asks to commit it
        self.writes: list[Write] = []


class TransactionOutcomes:
    def __init__(self) -> None:
        self.transactions: list[ClientTransaction] = []
        self.polls: dict[str, list[tuple[ReadRecord, ...]]] = {}  # by reader

    def begin(self, name: str) -> ClientTransaction:
        self.transactions.append(ClientTransaction(name))
        return self.transactions[-1]

    def count(self, outcome: Outcome) -> int:
        return sum(one.outcome is outcome for one in self.transactions)

    def check(self) -> None:
        history = TransactionHistory(
            transactions=tuple(
                Transaction(name=one.name, outcome=one.outcome, writes=tuple(one.writes)) for one in self.transactions
            ),
            readers=tuple(Reader(name=name, polls=tuple(polls)) for name, polls in self.polls.items()),
        )
        # transactions of several producers run at the same time, so their writes may be in any order
        found = violations(history, check_write_cycles=False)
        if found:
            raise InvariantViolated(Invariant.TRANSACTIONS, "; ".join(found[:3]))
