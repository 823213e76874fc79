"""TLS and SASL against Apache Kafka 4.3 itself: every protocol and mechanism, from Spark, source and sink."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.fetched import Missing
from tailrace.cli.main import main
from tailrace.pipeline.failure import PipelineFailed
from tailrace.pipeline.kafka.cluster import Cluster
from tailrace.pipeline.option_names import Options
from tests.pipeline.certificates import Certificate, make_certificate
from tests.pipeline.test_sink import values_in_topic
from tests.pipeline.topics import make_topic, numbered, write
from tests.secured_kafka import PASSWORD, Addresses, jaas, secured_kafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.foreign]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("server"), "server", "IP:127.0.0.1")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("client"), "client", "DNS:client")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, server: Certificate, client: Certificate) -> Iterator[Addresses]:
    try:
        with secured_kafka(tmp_path_factory.mktemp("secured"), str(server.both), str(client.certificate)) as addresses:
            yield addresses
    except Missing as missing:
        pytest.skip(str(missing))


def options(
    secured: Addresses, protocol: str, server: Certificate, client: Certificate, mechanism: str
) -> dict[str, str]:
    told = {"kafka.bootstrap.servers": secured[protocol], "kafka.security.protocol": protocol}
    if protocol.endswith("SSL"):
        told |= {"kafka.ssl.truststore.type": "PEM", "kafka.ssl.truststore.location": str(server.certificate)}
    if protocol == "SSL":
        told |= {"kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": str(client.both)}
    if mechanism:
        told |= {"kafka.sasl.mechanism": mechanism, "kafka.sasl.jaas.config": jaas(mechanism)}
    return told


WAYS = [("SSL", ""), ("SASL_SSL", "PLAIN"), ("SASL_SSL", "SCRAM-SHA-256"), ("SASL_PLAINTEXT", "SCRAM-SHA-512")]


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_from_topic_to_topic(
    spark: "SparkSession",
    secured: Addresses,
    server: Certificate,
    client: Certificate,
    topic: str,
    tmp_path: Path,
    protocol: str,
    mechanism: str,
) -> None:
    told = options(secured, protocol, server, client, mechanism)
    with Cluster(secured["PLAINTEXT"]) as cluster:
        make_topic(cluster, topic, 2)
        make_topic(cluster, f"{topic}-out")
        write(cluster, topic, numbered(100))
        frame = spark.readStream.format("tailrace").options(**told, subscribe=topic, startingOffsets="earliest").load()
        writer = frame.select("key", "value").writeStream.format("tailrace").options(**told, topic=f"{topic}-out")
        writer = writer.options(exactlyOnce="true", sinkId=topic, checkpointLocation=str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(60)
        assert len(values_in_topic(cluster, f"{topic}-out")) == 100
        assert PASSWORD not in str(query.lastProgress)


def test_archive_audit_and_replay_by_a_file_of_settings(
    spark: "SparkSession", secured: Addresses, server: Certificate, client: Certificate, topic: str, tmp_path: Path
) -> None:
    told = options(secured, "SASL_SSL", server, client, "SCRAM-SHA-512")
    config, folder = tmp_path / "client.properties", str(tmp_path / "history")
    config.write_text("# Kafka's own\n" + "".join(f"{name[6:]}={value}\n" for name, value in told.items()))
    at = ["--bootstrap", secured["SASL_SSL"], "--client-config", str(config)]
    with Cluster(secured["PLAINTEXT"]) as cluster:
        make_topic(cluster, topic)
        write(cluster, topic, numbered(100))
        make_topic(cluster, f"{topic}-again")
        assert main(["pipeline", "archive", *at, "--topics", topic, "--to", folder, "--available-now"]) == 0
        assert main(["pipeline", "audit", folder, *at]) == 0
        again = ["pipeline", "replay", folder, *at, "--topic", topic, "--into", f"{topic}-again"]
        assert main([*again, "--id", "first", "--to", "50"]) == 0
        assert main([*again, "--where", "offset >= 50"]) == 0
        assert values_in_topic(cluster, f"{topic}-again") == sorted(one.value or b"" for one in numbered(100))


def test_no_secret_is_in_a_plan(
    spark: "SparkSession", secured: Addresses, server: Certificate, client: Certificate
) -> None:
    told = options(secured, "SASL_SSL", server, client, "SCRAM-SHA-512")
    with Cluster(secured["PLAINTEXT"]) as cluster:
        make_topic(cluster, "planned")
    plan = spark.read.format("tailrace").options(**told, subscribe="planned").load()._jdf.queryExecution()
    for text in (plan.toString(), plan.analyzed().treeString(), plan.executedPlan().treeString()):
        assert PASSWORD not in text


def test_a_wrong_password_is_refused_at_once(secured: Addresses, server: Certificate, client: Certificate) -> None:
    for protocol, mechanism in WAYS[1:]:
        told = options(secured, protocol, server, client, mechanism)
        told["kafka.sasl.jaas.config"] = jaas(mechanism, "wr0ng-secret")
        with Options(told, ()).access.cluster() as cluster, pytest.raises(PipelineFailed) as failed:
            cluster.partitions_matching(".*")
        assert "does not accept the user name and password" in str(failed.value)
        assert "wr0ng-secret" not in str(failed.value)
