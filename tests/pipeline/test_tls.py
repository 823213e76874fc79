"""TLS between the pipeline's client and a broker: whom it trusts, what it shows, and what it says when it cannot."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.option_names import Options
from tailrace.testing import Broker
from tests.pipeline.certificates import Certificate, make_certificate, tls_in_front
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRONT = "127.0.0.2"  # where TLS is; the broker behind it tells clients to come here, to its own port


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture(scope="module")
def server(folder: Path) -> Certificate:
    return make_certificate(folder, "server", f"IP:{FRONT}")


@pytest.fixture(scope="module")
def client(folder: Path) -> Certificate:
    return make_certificate(folder, "client", "DNS:client")


@pytest.fixture(scope="module")
def behind() -> Iterator[Broker]:
    with Broker(advertised_host=FRONT) as broker:
        yield broker


@pytest.fixture(scope="module")
def address(behind: Broker, server: Certificate) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.both)
    with tls_in_front(FRONT, behind.port, ("127.0.0.1", behind.port), context):
        yield f"{FRONT}:{behind.port}"


def reach(address: str, **more: str) -> Cluster:
    given = {"kafka.bootstrap.servers": address, "kafka.security.protocol": "SSL"}
    given |= {f"kafka.ssl.{name.replace('_', '.')}": value for name, value in more.items()}
    access = Options(given, ()).access
    return Cluster(access.bootstrap, access.security, retry_timeout_s=0.0)


def test_a_certificate_that_is_trusted(address: str, server: Certificate, topic: str) -> None:
    with reach(address, truststore_type="PEM", truststore_location=str(server.certificate)) as cluster:
        make_topic(cluster, topic)
        write(cluster, topic, numbered(1000))
        assert len(values_in_topic(cluster, topic)) == 1000


@pytest.mark.parametrize("name", ["ca_location", "truststore_location", "truststore_certificates"])
def test_it_may_be_given_in_three_ways(address: str, server: Certificate, name: str) -> None:
    given = server.text if name == "truststore_certificates" else str(server.certificate)
    with reach(address, **{name: given}) as cluster:
        assert cluster.partitions_matching("none of them") == []


def test_a_certificate_of_a_stranger_is_refused_at_once(address: str, client: Certificate) -> None:
    with reach(address, ca_location=str(client.certificate)) as cluster, pytest.raises(PipelineFailed) as failed:
        cluster.partitions_matching(".*")
    assert "no TLS with 127.0.0.2" in str(failed.value)
    assert "kafka.ssl.truststore.location" in str(failed.value)


def test_the_name_is_checked_unless_it_is_said_otherwise(behind: Broker, folder: Path, address: str) -> None:
    other = make_certificate(folder, "other", "DNS:elsewhere")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(other.both)
    with tls_in_front("127.0.0.3", behind.port, ("127.0.0.1", behind.port), context):
        at, trusted = f"127.0.0.3:{behind.port}", str(other.certificate)
        with reach(at, ca_location=trusted) as cluster, pytest.raises(PipelineFailed, match="IP address mismatch"):
            cluster.partitions_matching(".*")
        with reach(at, ca_location=trusted, endpoint_identification_algorithm="") as cluster:
            assert cluster.partitions_matching("none of them") == []


def test_a_broker_that_wants_to_see_ours(behind: Broker, client: Certificate, folder: Path) -> None:
    named = make_certificate(folder, "named", "IP:127.0.0.4")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(named.both)
    with tls_in_front("127.0.0.4", behind.port, ("127.0.0.1", behind.port), context):
        at, trusted = f"127.0.0.4:{behind.port}", str(named.certificate)
        with reach(at, ca_location=trusted) as cluster, pytest.raises(PipelineFailed, match="or a certificate"):
            cluster.partitions_matching(".*")
        with reach(at, ca_location=trusted, keystore_location=str(client.both)) as cluster:
            assert cluster.partitions_matching("none of them") == []


def test_a_broker_without_tls_is_no_broker_with_it(behind: Broker) -> None:
    with (
        reach(f"127.0.0.1:{behind.port}") as cluster,
        pytest.raises(PipelineFailed, match="does this port want TLS, or none"),
    ):
        cluster.partitions_matching(".*")


@pytest.mark.spark
def test_a_read_through_spark(spark: "SparkSession", address: str, server: Certificate, topic: str) -> None:
    with reach(address, ca_location=str(server.certificate)) as cluster:
        make_topic(cluster, topic)
        write(cluster, topic, numbered(100))
    reader = spark.read.format("tailrace").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    reader = reader.option("kafka.security.protocol", "SSL")
    reader = reader.option("kafka.ssl.truststore.type", "PEM")
    assert reader.option("kafka.ssl.truststore.location", str(server.certificate)).load().count() == 100
