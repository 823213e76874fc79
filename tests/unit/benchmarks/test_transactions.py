"""The transaction load commits and aborts as requested, and reading it back distinguishes the two."""

from pathlib import Path

from benchmarks import frames
from benchmarks.connection import Connection, create_topic, settled_end
from benchmarks.load import Work, perform
from benchmarks.transaction_load import Kind, TransactionWork
from benchmarks.transaction_load import perform as transact
from tailrace.testing import Broker


def work(broker: Broker, kind: Kind, *, producers: int, transactions: int, abort_every: int) -> TransactionWork:
    return TransactionWork(
        kind=kind,
        host="127.0.0.1",
        port=broker.port,
        pid=broker.pid,
        topic="t",
        messages=3,
        value_bytes=10,
        producers=producers,
        transactions=transactions,
        abort_every=abort_every,
    )


def read_bytes(broker: Broker, end: int, *, committed: bool) -> int:
    host, port, pid = "127.0.0.1", broker.port, broker.pid
    work = Work(kind="catch-up", host=host, port=port, pid=pid, topic="t", requests=end, committed=committed)
    return perform(work).bytes


def aborted(broker: Broker, *, committed: bool) -> int:
    request = frames.FetchRequest("t", max_bytes=10_000, max_wait_ms=100, committed=committed).at(0)
    with Connection("127.0.0.1", broker.port) as connection:
        found = frames.read_fetched(connection.ask(request), "t")
    assert found.error == 0
    assert found.records
    return found.aborted


def test_every_transaction_ends_as_it_should(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path / "data", fsync="never") as broker:
        create_topic("127.0.0.1", broker.port, "t")
        assert transact(work(broker, "wire", producers=2, transactions=8, abort_every=2)).transactions == 8
        assert transact(work(broker, "librdkafka", producers=1, transactions=2, abort_every=0)).transactions == 2
        end = settled_end("127.0.0.1", broker.port, "t")
        assert end == 10 * (3 + 1)  # a transaction's records, and its marker
        assert (aborted(broker, committed=True), aborted(broker, committed=False)) == (4, 0)
        sizes = [read_bytes(broker, end, committed=committed) for committed in (True, False)]
        assert sizes[0] == sizes[1], "both isolation levels read the same bytes"
