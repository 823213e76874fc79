"""TLS: clients check the broker's certificate, and with mutual TLS the broker checks theirs."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.testing import Broker
from tests.certificates import Authority
from tests.interop.client import Client, Refused, TlsOptions
from tests.interop.drivers.java import Java
from tests.interop.drivers.kafka_tools import KafkaTools
from tests.interop.feature import feature
from tests.interop.test_writing import assert_same, numbered


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[Broker]:
    """A broker that only clients with a certificate of the authority can use."""
    with Broker(**authority.mutual_tls()) as broker:
        yield broker


@pytest.fixture(scope="module")
def open_to_all(authority: Authority) -> Iterator[Broker]:
    """A broker with TLS that asks clients for no certificate."""
    with Broker(listener_security_protocol_map="kafka:SSL", ssl_keystore_location=authority.keystore()) as broker:
        yield broker


def write_and_read(client: Client, broker: Broker, tls: TlsOptions, name: str) -> None:
    with closing(type(client)(broker.bootstrap, tls)) as with_tls:
        messages = numbered(300)
        with_tls.produce(name, messages)
        assert_same(with_tls, name, messages)


@feature("TLS: the client checks the broker's certificate, and has none", "TLS", "produce")
def test_tls(client: Client, open_to_all: Broker, authority: Authority, name: str) -> None:
    write_and_read(client, open_to_all, TlsOptions(authority.truststore), name)


@feature("mutual TLS", "TLS", "produce")
def test_mutual_tls(client: Client, secured: Broker, authority: Authority, name: str) -> None:
    write_and_read(client, secured, TlsOptions(authority.truststore, authority.keystore("client")), name)


@feature("mutual TLS, as a command line", "TLS", "command line")
def test_kafka_tools(client: KafkaTools, secured: Broker, authority: Authority, name: str) -> None:
    with_tls = type(client)(secured.bootstrap, TlsOptions(authority.truststore, authority.keystore("tools")))
    with_tls.run("console-producer", "--topic", name, given="1\n2\n3\n")
    got = with_tls.run("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "3")
    assert got.split() == ["1", "2", "3"]


@pytest.mark.long
@pytest.mark.foreign
@pytest.mark.parametrize("client", [Java], ids=["Java"], indirect=True)
def test_java_trusts_no_stranger(client: Java, open_to_all: Broker, tmp_path: Path, name: str) -> None:
    tls = TlsOptions(Authority(tmp_path, "stranger").truststore)
    failed = pytest.raises(Refused, match="SslAuthenticationException: SSL handshake failed")
    with closing(type(client)(open_to_all.bootstrap, tls)) as refusing, failed:
        refusing.produce(name, numbered(1))
    assert "the other side refuses our certificate" in open_to_all.log


def test_strangers_are_refused(secured: Broker, authority: Authority, tmp_path: Path) -> None:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    stranger = Authority(tmp_path, "stranger")
    own = TlsOptions(authority.truststore, authority.keystore("own"))
    for refused in (
        TlsOptions(authority.truststore),
        TlsOptions(authority.truststore, stranger.keystore("foreign")),
        TlsOptions(stranger.truststore, own.keystore),
    ):
        with pytest.raises(KafkaException, match="_TRANSPORT"):
            AdminClient({"bootstrap.servers": secured.bootstrap, **refused.of_librdkafka}).list_topics(timeout=2)
    assert AdminClient({"bootstrap.servers": secured.bootstrap, **own.of_librdkafka}).list_topics(timeout=10)
    assert "no TLS with client 127.0.0.1:" in secured.log
