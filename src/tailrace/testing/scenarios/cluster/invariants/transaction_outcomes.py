"""What transactional clients did and saw: who wrote what, how each transaction ended, what readers were given.

How a transaction ends is settled by its client: what it did not ask to commit is aborted, whatever becomes of it; what
it asked to commit, and was told so, is committed; otherwise nobody knows. At the end of a run the whole history is
checked as Jepsen does.
"""

from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.transaction_history import (
    Outcome,
    Reader,
    Seen,
    Transaction,
    TransactionHistory,
    Write,
    violations,
)


class ClientTransaction:
    """One transaction, as its client knows it."""

    __slots__ = ("name", "outcome", "writes")

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = Outcome.ABORTED  # until its client asks for another end
        self.writes: list[Write] = []


class TransactionOutcomes:
    def __init__(self) -> None:
        self.transactions: list[ClientTransaction] = []
        self.polls: dict[str, list[tuple[Seen, ...]]] = {}  # by reader

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
        # Transactions of several producers run at the same time, so their writes may stand in any order.
        found = violations(history, write_cycles=False)
        if found:
            raise InvariantViolated(Invariant.TRANSACTIONS, "; ".join(found[:3]))
