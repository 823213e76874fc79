"""Transactions: all of it or nothing, and nothing of a zombie's."""

import time
import uuid

import pytest

from tests.interop.client import Client, Refused
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.messages import Message, Reading
from tests.interop.shapes import TopicPlan
from tests.interop.transactor import Transactor

PARTITIONS = 2
SHORT_MS = 1000


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    """A topic with two partitions."""
    bench.create_topic(name, TopicPlan(partitions=PARTITIONS))
    eventually(lambda: name in bench.list_topics())
    return name


@pytest.fixture
def transaction() -> str:
    return f"transaction-{uuid.uuid4().hex[:12]}"


def committed(client: Client, topic: str, count: int, partition: int = 0) -> list[bytes | None]:
    """The first values that readers of committed records see."""
    with client.reader(topic, Reading(committed_only=True), partition) as reader:
        return [one.value for one in reader.take(count)]


@feature("transactions commit in several partitions, one after the other", "transactor", "reader")
def test_commit(client: Client, topic: str, transaction: str) -> None:
    with client.transactor(transaction) as producer:
        for number in range(3):
            producer.begin()
            for partition in range(PARTITIONS):
                producer.write(topic, b"%d" % number, b"%d again" % number, partition=partition)
            producer.commit()
    for partition in range(PARTITIONS):
        assert committed(client, topic, 6, partition) == [b"0", b"0 again", b"1", b"1 again", b"2", b"2 again"]


@feature("what was aborted is invisible to readers of committed records, and to them only", "transactor", "reader")
def test_abort(client: Client, topic: str, transaction: str) -> None:
    with client.transactor(transaction) as producer:
        for value in (b"a", b"b", b"c"):
            producer.begin()
            producer.write(topic, value)
            producer.abort() if value == b"b" else producer.commit()
    assert committed(client, topic, 2) == [b"a", b"c"]
    assert [one.value for one in client.consume(topic, 3)] == [b"a", b"b", b"c"]


def go_on(zombie: Transactor, topic: str) -> None:
    """Some clients hear at once that they are fenced, others when they commit."""
    zombie.write(topic, b"again")
    zombie.commit()


@feature("a zombie is fenced: what it had open is aborted, and it writes nothing more", "transactor", "reader")
def test_fence(client: Client, topic: str, transaction: str) -> None:
    with client.transactor(transaction) as zombie:
        zombie.begin()
        zombie.write(topic, b"zombie")
        with client.transactor(transaction) as producer:
            with pytest.raises(Refused):
                go_on(zombie, topic)
            producer.begin()
            producer.write(topic, b"new")
            producer.commit()
    assert committed(client, topic, 1) == [b"new"]


@feature("what is open for too long is aborted: readers go on", "transactor", "reader")
def test_timeout(client: Client, topic: str, transaction: str, bench: Client) -> None:
    with client.transactor(transaction, SHORT_MS) as silent:
        silent.begin()
        silent.write(topic, b"silent")
        bench.produce(topic, [Message(value=b"behind it")])
        began = time.monotonic()
        assert committed(client, topic, 1) == [b"behind it"]
        assert time.monotonic() - began < SHORT_MS / 1000 + 5
        with pytest.raises(Refused):
            silent.commit()


def read_up_to(bench: Client, group: str, topic: str, offset: int) -> None:
    """A group has read the first partition so far, once the transaction's marker has come to it."""
    eventually(lambda: bench.committed(group, topic) == {0: offset})


@feature("consume, transform, produce: offsets and messages are committed together", "transactor", "reader")
def test_consume_transform_produce(client: Client, topic: str, transaction: str, bench: Client) -> None:
    group = f"group-of-{transaction}"
    bench.produce(topic, [Message(value=b"%d" % number) for number in range(10)])
    read = client.consume(topic, 10)
    with client.transactor(transaction) as producer:
        for at, aborts in ((0, False), (5, True), (5, False)):
            producer.begin()
            producer.write(topic, *(b"%s!" % (one.value or b"") for one in read[at : at + 5]), partition=1)
            producer.commit_offsets(group, topic, {0: at + 5})
            producer.abort() if aborts else producer.commit()
            read_up_to(bench, group, topic, at if aborts else at + 5)
    assert committed(client, topic, 10, partition=1) == [b"%d!" % number for number in range(10)]


@feature("list and describe transactions, open and ended", "transactor", "list_transactions", "describe_transaction")
def test_describe(client: Client, topic: str, transaction: str) -> None:
    with client.transactor(transaction, SHORT_MS * 30) as producer:
        assert client.describe_transaction(transaction).state == "Empty"
        producer.begin()
        producer.write(topic, b"v", partition=1)
        assert client.list_transactions()[transaction] == "Ongoing"
        shape = client.describe_transaction(transaction)
        assert (shape.state, shape.timeout_ms, shape.partitions) == ("Ongoing", SHORT_MS * 30, ((topic, 1),))
        assert (shape.producer_id >= 0, shape.producer_epoch) == (True, 0)
        producer.commit()
        eventually(lambda: client.describe_transaction(transaction).state == "CompleteCommit")
        assert client.list_transactions()[transaction] == "CompleteCommit"
    with pytest.raises(Refused):
        client.describe_transaction(f"not {transaction}")


@feature("an administrator finds a partition's open transaction, and fences its producer", "fence", "transactor")
def test_administer(client: Client, topic: str, transaction: str, bench: Client) -> None:
    bench.produce(topic, [Message(value=b"before")], partition=1)
    with client.transactor(transaction) as producer:
        producer.begin()
        producer.write(topic, b"open", partition=1)
        assert client.open_on(topic, 1) == {client.describe_transaction(transaction).producer_id: 1}
        client.fence(transaction)
        with pytest.raises(Refused):
            go_on(producer, topic)
    eventually(lambda: client.open_on(topic, 1) == {})
    assert client.describe_transaction(transaction).state in ("CompleteAbort", "Empty")
