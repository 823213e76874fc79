"""Every check accepts a correct history and reports a violation."""

from dataclasses import replace

import pytest

from tailrace.testing.transaction_history import (
    Outcome,
    Reader,
    ReadRecord,
    Transaction,
    TransactionHistory,
    Write,
    violations,
)


def wrote(name: str, outcome: Outcome, *writes: str) -> Transaction:
    """A transaction; each write is given as partition=value, or partition=value@offset."""
    found = []
    for one in writes:
        partition, _, rest = one.partition("=")
        value, _, offset = rest.partition("@")
        found.append(Write(partition, value, int(offset or -1)))
    return Transaction(name=name, outcome=outcome, writes=tuple(found))


def reader(name: str, *polls: str) -> Reader:
    """A reader; each poll is given as partition@offset=value, several separated by spaces."""

    def seen(text: str) -> ReadRecord:
        place, _, value = text.partition("=")
        partition, _, offset = place.partition("@")
        return ReadRecord(partition, int(offset), value)

    return Reader(name=name, polls=tuple(tuple(seen(one) for one in poll.split()) for poll in polls))


good = TransactionHistory(
    transactions=(
        wrote("t1", Outcome.COMMITTED, "p=a", "q=b"),
        wrote("t2", Outcome.ABORTED, "p=c", "q=d"),
        wrote("t3", Outcome.UNKNOWN, "p=e"),
        wrote("t4", Outcome.UNKNOWN, "p=f"),
        wrote("t5", Outcome.COMMITTED, "q=g", "p=h"),
    ),
    readers=(
        reader("r1", "p@0=a", "p@4=e p@9=h q@0=b", "q@7=g"),
        reader("r2", "q@0=b q@7=g"),
        reader("r2 again", "q@0=b"),
    ),
)


def only(history: TransactionHistory, what: str) -> None:
    # a value at two offsets is both before and after others, so duplicates also look like cycles
    found = violations(history, check_write_cycles=what != "duplicate")
    assert found
    assert {one.partition(":")[0] for one in found} == {what}, found


def test_a_good_history() -> None:
    assert violations(good) == []


def test_lost_writes() -> None:
    only(replace(good, readers=(reader("r1", "p@0=a p@4=e p@9=h q@0=b"),)), "lost write")
    only(replace(good, readers=()), "lost write")


def test_a_write_above_all_offsets_that_were_read_is_not_lost() -> None:
    transactions = (wrote("t1", Outcome.COMMITTED, "p=a@5"), wrote("t2", Outcome.COMMITTED, "p=b"))
    short = TransactionHistory(transactions=transactions, readers=(reader("r", "p@4=x"),), is_read_to_end=False)
    assert violations(short) == []
    only(replace(short, readers=(reader("r", "p@4=x p@6=y"),)), "lost write")


def test_aborted_reads() -> None:
    only(replace(good, readers=(*good.readers, reader("r3", "p@2=c"))), "aborted read")


@pytest.mark.parametrize("polls", [("p@4=e", "p@0=a"), ("p@4=e p@4=e",), ("p@0=a p@9=h p@4=e",)])
def test_nonmonotonic_polls(polls: tuple[str, ...]) -> None:
    only(replace(good, readers=(*good.readers, reader("r3", *polls))), "nonmonotonic poll")


def test_a_value_at_two_offsets_or_two_values_at_one() -> None:
    only(replace(good, readers=(*good.readers, reader("r3", "p@10=a"))), "duplicate")
    only(replace(good, readers=(*good.readers, reader("r3", "q@8=a"))), "duplicate")
    only(replace(good, readers=(*good.readers, reader("r3", "p@0=z"))), "duplicate")


def test_write_cycles() -> None:
    transactions = (
        wrote("t1", Outcome.COMMITTED, "p=a", "r=f"),
        wrote("t2", Outcome.COMMITTED, "p=b", "q=c"),
        wrote("t3", Outcome.COMMITTED, "q=d", "r=e"),
    )
    cycle = reader("r", "p@0=a p@1=b q@0=c q@1=d r@0=e r@1=f")
    only(TransactionHistory(transactions=transactions, readers=(cycle,)), "write cycle")
    line = reader("r", "p@0=a p@1=b q@0=c q@1=d r@0=f r@1=e")
    assert violations(TransactionHistory(transactions=transactions, readers=(line,))) == []
    history = TransactionHistory(transactions=transactions, readers=(cycle,))
    assert violations(history, check_write_cycles=False) == []


def test_a_long_chain_of_transactions_is_no_cycle() -> None:
    names = [f"t{number}" for number in range(5000)]
    transactions = tuple(wrote(name, Outcome.COMMITTED, f"p={name}") for name in names)
    line = reader("r", " ".join(f"p@{number}={name}" for number, name in enumerate(names)))
    assert violations(TransactionHistory(transactions=transactions, readers=(line,))) == []
