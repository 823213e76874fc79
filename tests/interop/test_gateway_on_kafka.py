"""The gateway in front of Apache Kafka: in by each door and out by each; and TLS and a login upstream."""

import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks import kafka
from benchmarks.fetched import Missing
from tailrace.doors.client_doors import CLIENT_DOORS
from tests.interop.doors import connect, gateway, make_topic
from tests.interop.test_all_doors import CELLS, VALUES
from tests.pipeline.certificates import make_certificate
from tests.secured_kafka import jaas, secured_kafka

pytestmark = [
    pytest.mark.long,
    pytest.mark.foreign,
    pytest.mark.skipif(not all(one.is_installed for one in CLIENT_DOORS), reason="needs the packages of all doors"),
]


@pytest.fixture(scope="module")
def before_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Mapping[str, str], Path]]:
    """The endpoints of a gateway in front of Apache Kafka, and its data directory."""
    folder = tmp_path_factory.mktemp("gateway")
    try:
        kafka.jars()
    except Missing as missing:
        pytest.skip(str(missing))
    with kafka.serving(tmp_path_factory.mktemp("kafka")) as server:
        address = f"{server.host}:{server.port}"
        with gateway(address, folder) as endpoints:
            yield {"kafka": address, **endpoints}, folder


@pytest.mark.parametrize(("way_in", "way_out"), CELLS)
def test_in_by_one_door_and_out_by_another(
    before_kafka: tuple[Mapping[str, str], Path], way_in: str, way_out: str
) -> None:
    endpoints, data_dir = before_kafka
    topic_id = CELLS.index((way_in, way_out))
    make_topic(endpoints["kafka"], topic_id)
    connect(way_in, endpoints, data_dir).put(topic_id, VALUES)
    assert connect(way_out, endpoints, data_dir).get(topic_id, len(VALUES)) == VALUES


def test_the_upstream_may_ask_for_tls_and_a_login(tmp_path: Path) -> None:
    server = make_certificate(tmp_path, "server", "IP:127.0.0.1")
    client = make_certificate(tmp_path, "client", "DNS:client")
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-256\n"
        f"sasl.jaas.config={jaas('SCRAM-SHA-256')}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={server.certificate}\n"
    )
    (tmp_path / "kafka").mkdir()
    try:
        with (
            secured_kafka(tmp_path / "kafka", str(server.both), str(client.certificate)) as addresses,
            gateway(addresses["SASL_SSL"], tmp_path, "--client-config", str(config)) as endpoints,
        ):
            url = f"http://{endpoints['http']}/v1/topics"
            body = b'{"name": "dmqp-1", "partitions": 1}'
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            assert urllib.request.urlopen(request, timeout=30).status == 201
            for door in ("http", "grpc", "dmqp"):
                connect(door, endpoints, tmp_path).put(1, [door.encode()])
            assert connect("grpc", endpoints, tmp_path).get(1, 3) == [b"http", b"grpc", b"dmqp"]
    except Missing as missing:
        pytest.skip(str(missing))
