"""What the users of three other queues run, at a gateway: in front of Tailrace, and in front of Apache Kafka.

What a gateway cannot offer is in docs/gateway.md: nobody can shut a broker down there, and Apache Kafka has several
locks a partition, so messages that several clients take at a time may come in another order.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks import kafka
from benchmarks.fetched import Missing
from compat.dmqp import dmqp_client
from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.testing import Broker
from tests.interop.doors import gateway
from tests.interop.message_queue_stub import Stubs
from tests.interop.test_message_queue_stub import BATCH, Client, keyed
from tests.interop.test_message_queue_stub import stubs as stubs
from tests.pipeline.postgres_server import dsn as dsn
from tests.pipeline.queue_tables import fill, own_database, rows
from tests.unit.doors.http.test_http_queue_libraries import SHARES, counted, load, run

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.skipif(not all(one.is_installed for one in CLIENT_DOORS), reason="needs the packages of all doors"),
]

MiB = 1024 * 1024
EMSGSIZE = 90
TAKEN_AT_ONCE = 60


@pytest.fixture(scope="module", params=["tailrace", pytest.param("Apache Kafka", marks=pytest.mark.long)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator["Served"]:
    folder = tmp_path_factory.mktemp("gateway")
    if request.param == "tailrace":
        with Broker(fsync="never") as broker, gateway(broker.bootstrap, folder) as endpoints:
            yield Served(broker.bootstrap, endpoints, folder)
        return
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with (
        kafka.serving(tmp_path_factory.mktemp("kafka")) as server,
        gateway(f"{server.host}:{server.port}", folder) as endpoints,
    ):
        yield Served(f"{server.host}:{server.port}", endpoints, folder)


class Served:
    """A gateway with all doors, in front of brokers."""

    def __init__(self, bootstrap: str, endpoints: Mapping[str, str], folder: Path) -> None:
        self.bootstrap = bootstrap
        self.endpoints = endpoints
        self._certificate = str(folder / "dmqp-certificate.pem")

    def dmqp(self) -> dmqp_client.Client:
        host, _, port = self.endpoints["dmqp"].rpartition(":")
        return dmqp_client.Client(host, int(port), ca_file=self._certificate)


def test_stubs_of_message_queue_write_and_read(served: Served, stubs: Stubs) -> None:
    address = served.endpoints["grpc"]
    client = Client(stubs, [address], "orders")
    assert set(client.partitions.values()) == {address}  # a gateway answers for all partitions
    messages = keyed(client)
    for partition, ones in messages.items():
        for first in range(0, len(ones), BATCH):
            assert client.produce(partition, ones[first : first + BATCH])
    for partition, ones in messages.items():
        assert client.consume_all(partition, "g") == [(number, value) for number, (_, value) in enumerate(ones)]
        assert client.at(partition).consume("g", "orders", partition, 5, 0).success  # seeks
        (again,) = client.at(partition).consume("g", "orders", partition, -1, 1).messages
        assert (again.offset, again.value) == (5, ones[5][1])
    assert not stubs.at(address).shut_down("1").success


def test_dmqp_answers_as_it_does_at_a_broker(served: Served) -> None:
    with served.dmqp() as client:
        assert (client.pop(1), client.peek(1), client.peek_timestamp(1)) == (None, None, None)
        stamp = client.push(1, b"two coffees")
        assert (client.peek_timestamp(1), client.peek(1)) == (stamp, (stamp, b"two coffees"))
        assert client.pop(2) is None  # another topic
        assert client.pop(1) == (stamp, b"two coffees")
        assert client.pop(1) is None
        largest = bytes(MiB)
        client.push(3, largest)
        found = client.pop(3)
        assert found is not None
        assert found.payload == largest
        with pytest.raises(dmqp_client.DmqpError) as refused:
            client.push(3, bytes(MiB + 1))
        assert refused.value.status == EMSGSIZE
        assert client.pop(3) is None


def test_two_clients_that_pop_at_once_never_get_the_same_message(served: Served) -> None:
    pushed = [b"%d" % number for number in range(TAKEN_AT_ONCE)]
    with served.dmqp() as first, served.dmqp() as second:
        first.push_all(4, pushed)
        with ThreadPoolExecutor() as pool:
            halves = list(pool.map(pop_all, (first, second)))
    assert sorted(halves[0] + halves[1]) == sorted(pushed)


def pop_all(client: dmqp_client.Client) -> list[bytes]:
    found: list[bytes] = []
    while True:
        try:
            message = client.pop(4)
        except dmqp_client.TryAgain:
            continue
        if message is None:
            return found
        found.append(message.payload)


def test_the_system_test_of_the_http_queue_in_small(served: Served, tmp_path: Path) -> None:
    run("p", served.endpoints["http"], tmp_path, "--lines", "8")
    run("c", served.endpoints["http"], tmp_path, "--lines", "8")
    assert [sum(counts.values()) for counts in counted(tmp_path)] == [40, 40, 40]


def test_the_http_queue_as_tables(served: Served, dsn: str) -> None:
    pytest.importorskip("psycopg")
    address = served.endpoints["http"]
    producer = load("producer_client").MyProducer(["tabled"], address)
    consumer = load("consumer_client").MyConsumer(["tabled"], address)
    with own_database(dsn) as queue:
        for number in range(10):
            producer.Enqueue("tabled", f"m{number}")
        for taken in range(0, 10, 5):
            found = [consumer.Dequeue("tabled") for _ in range(5)]
            assert sorted(found) == [f"m{number}" for number in range(taken, taken + 5)]
            fill(served.bootstrap, queue)
            sizes = "SELECT size FROM consumer WHERE topic = 'tabled'"
            assert rows(queue, sizes) == [(5 - taken,)] == [(consumer.Size("tabled"),)]
        sent = "SELECT message FROM message JOIN producer ON id = producer_id WHERE message.topic = 'tabled'"
        assert sorted(rows(queue, sent)) == [(f"m{number}",) for number in range(10)]


@pytest.mark.long
def test_the_system_test_of_the_http_queue(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with (
        kafka.serving(tmp_path_factory.mktemp("kafka")) as server,
        gateway(f"{server.host}:{server.port}", tmp_path_factory.mktemp("gateway")) as endpoints,
    ):
        run("p", endpoints["http"], tmp_path)
        run("c", endpoints["http"], tmp_path)
        assert counted(tmp_path) == [SHARES] * 3
