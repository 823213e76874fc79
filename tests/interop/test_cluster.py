"""What clients are told about the cluster as a whole, and about what it stores."""

from tests.interop.client import Client, Message
from tests.interop.feature import feature


@feature("describe the cluster: its id, its controller, its brokers", "describe_cluster")
def test_describe_cluster(client: Client, bootstrap: str) -> None:
    cluster = client.describe_cluster()
    host, _, port = bootstrap.rpartition(":")
    assert (host, int(port)) in [(host, port) for _, host, port in cluster.brokers]
    assert cluster.controller in [broker for broker, _, _ in cluster.brokers]
    assert cluster.cluster_id


@feature("describe the cluster: the same id for every client", "describe_cluster")
def test_cluster_id(client: Client, bench: Client) -> None:
    assert client.describe_cluster() == bench.describe_cluster()


@feature("describe the log directories: bytes held of a topic", "stored_bytes", "produce")
def test_log_directories(client: Client, topic: str) -> None:
    assert client.stored_bytes(topic) == 0
    client.produce(topic, [Message(value=bytes(50_000))])
    assert 50_000 < client.stored_bytes(topic) < 51_000


@feature("list the resources that have settings (ListConfigResources)", "configured")
def test_config_resources(client: Client, topic: str, bench: Client) -> None:
    configured = client.configured()
    assert topic in configured["topic"]
    assert configured["broker"] == [str(broker) for broker, _, _ in bench.describe_cluster().brokers]
