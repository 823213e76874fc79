"""What clients are told about the cluster as a whole, and about what it stores."""

import pytest

from tests.interop.client import Client, Refused
from tests.interop.feature import feature
from tests.interop.messages import Message

INVALID_UPDATE_VERSION = 95


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


@feature("feature levels: supported, in force; one is not lowered (UpdateFeatures)", "features", "raise_feature")
def test_features(client: Client) -> None:
    found = client.features()
    first, last, level = found["metadata.version"]
    assert (first, level) == (1, last), "a new cluster is at the newest level"
    assert found["group.version"] == (1, 1, 1)
    client.raise_feature("metadata.version", level, validate_only=True)
    client.raise_feature("metadata.version", level)
    for refused in (level - 1, last + 1):
        with pytest.raises(Refused) as refusal:
            client.raise_feature("metadata.version", refused)
        assert refusal.value.code == INVALID_UPDATE_VERSION
    assert client.features() == found
