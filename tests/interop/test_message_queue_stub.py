"""Stubs of `message_queue.MessageQueue`, as they are, on three brokers."""

import zlib
from collections.abc import Iterator

import grpc
import pytest

from tailrace.testing import Cluster
from tests.interop.conftest import eventually
from tests.interop.message_queue_stub import Stub, Stubs

pytestmark = pytest.mark.foreign

MESSAGES = 1_000
BATCH = 100


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stubs]:
    stubs = Stubs(tmp_path_factory.mktemp("stub"))
    yield stubs
    stubs.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, proxied=False, grpc_port=0, fsync="never") as cluster:
        yield cluster


class Client:
    """What a program does that was written for such stubs: asks for metadata, and goes to each partition's broker."""

    def __init__(self, stubs: Stubs, addresses: list[str], topic: str) -> None:
        self._stubs = stubs
        self._addresses = addresses
        self.topic = topic
        self.partitions: dict[int, str] = {}
        self.refresh()

    def refresh(self) -> None:
        for address in self._addresses:
            try:
                found = self._stubs.at(address).metadata(self.topic)
            except grpc.RpcError:
                continue
            assert found.success, found.error_message
            self.partitions = {one.partition_id: one.broker_address for one in found.partitions}
            return
        raise AssertionError("no broker answers")

    def at(self, partition: int) -> Stub:
        return self._stubs.at(self.partitions[partition])

    def partition_of(self, key: str) -> int:
        return zlib.crc32(key.encode()) % len(self.partitions)

    def produce(self, partition: int, messages: list[tuple[str, str]]) -> bool:
        try:
            return bool(self.at(partition).produce(self.topic, partition, messages).success)
        except grpc.RpcError:
            return False

    def produce_until_written(self, partition: int, messages: list[tuple[str, str]]) -> None:
        def try_once() -> bool:
            if self.produce(partition, messages):
                return True
            self.refresh()
            return False

        eventually(try_once)

    def consume_all(self, partition: int, group: str) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        while True:
            start = found[-1][0] + 1 if found else 0
            answer = self.at(partition).consume(group, self.topic, partition, start, BATCH)
            assert answer.success, answer.error_message
            if not answer.messages:
                return found
            found += [(one.offset, one.value) for one in answer.messages]


def addresses(cluster: Cluster) -> list[str]:
    return [broker.endpoints["grpc"] for broker in cluster.brokers]


def keyed(client: Client) -> dict[int, list[tuple[str, str]]]:
    messages: dict[int, list[tuple[str, str]]] = {number: [] for number in client.partitions}
    for number in range(MESSAGES):
        key = f"key-{number % 37}"
        messages[client.partition_of(key)].append((key, f"value-{number}"))
    return messages


def test_a_stub_writes_and_reads_over_three_brokers(cluster: Cluster, stubs: Stubs) -> None:
    client = Client(stubs, addresses(cluster), "orders")
    assert sorted(client.partitions) == [0, 1, 2]
    assert sorted(client.partitions.values()) == sorted(addresses(cluster))  # each broker leads one
    messages = keyed(client)
    for partition, ones in messages.items():
        for first in range(0, len(ones), BATCH):
            assert client.produce(partition, ones[first : first + BATCH])
    for partition, ones in messages.items():
        assert client.consume_all(partition, "g") == [(number, value) for number, (_, value) in enumerate(ones)]
        wrong = next(address for address in addresses(cluster) if address != client.partitions[partition])
        text = f"Partition {partition} is not assigned to this broker."
        assert stubs.at(wrong).produce("orders", partition, ones[:1]).error_message == text
        assert stubs.at(wrong).consume("g", "orders", partition, 0, 1).error_message == text
        assert client.at(partition).consume("g", "orders", partition, 5, 0).success  # seeks
        (again,) = client.at(partition).consume("g", "orders", partition, -1, 1).messages
        assert (again.offset, again.value) == (5, ones[5][1])
    for number, address in enumerate(addresses(cluster), 1):
        assert stubs.at(addresses(cluster)[0]).broker_address(str(number)).broker_address == address


def test_a_broker_that_is_killed_loses_nothing_and_producing_goes_on(cluster: Cluster, stubs: Stubs) -> None:
    client = Client(stubs, addresses(cluster), "payments")
    messages = keyed(client)
    halves = {partition: (ones[: len(ones) // 2], ones[len(ones) // 2 :]) for partition, ones in messages.items()}
    for partition, (first, _) in halves.items():
        client.produce_until_written(partition, first)
    victim = addresses(cluster).index(client.partitions[0])
    cluster.brokers[victim].kill()
    for partition, (_, second) in halves.items():
        client.produce_until_written(partition, second)
    client.refresh()
    for partition, ones in messages.items():
        found = client.consume_all(partition, "after")
        values = [value for _, value in found]
        assert list(dict.fromkeys(values)) == [value for _, value in ones]  # a batch tried twice may be there twice
        assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
    cluster.brokers[victim].start()


def test_shutdown_stops_the_broker(cluster: Cluster, stubs: Stubs) -> None:
    first, second, _ = addresses(cluster)
    other = stubs.at(first).shut_down("2")
    assert (other.success, other.error_message, other.broker_address) == (False, "Broker ID does not match", second)
    assert "not found" in stubs.at(first).shut_down("9").error_message
    assert stubs.at(second).shut_down("2").success
    assert cluster.brokers[1].wait() == 0
    assert cluster.brokers[0].is_running
