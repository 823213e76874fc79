"""`tailrace.broker.certificates`: TLS of a broker's listeners, with real processes and in simulation."""

import asyncio
import logging
import os
import re
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tailrace.broker import certificates as certificates_module
from tailrace.broker.certificates import Certificates
from tailrace.broker.node import CannotStart
from tailrace.broker.starting import start_broker
from tailrace.model.listeners import KAFKA_LISTENER, PEER_LISTENER
from tailrace.model.settings import SettingError, Settings
from tailrace.ports import TlsFiles, system_ports
from tailrace.testing import Broker, BrokerFailed, Cluster
from tests.certificates import Authority
from tests.unit.broker.simulated import Brokers, simulated

DEADLINE_S = 20.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, mapping: str, **more: object) -> dict[str, Any]:
    return {
        "listener_security_protocol_map": mapping,
        "ssl_keystore_location": authority.keystore(),
        "ssl_truststore_location": authority.truststore,
        **more,
    }


def serial_shown(broker: Broker, authority: Authority) -> int:
    """The serial number of the certificate that new clients get."""
    text = ssl.get_server_certificate(("127.0.0.1", broker.port), ca_certs=authority.truststore)
    return hash(ssl.PEM_cert_to_DER_cert(text))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hang_up(broker: Broker, expected: str, times: int) -> None:
    """Send SIGHUP, and wait until a pattern has been in the log so many times."""
    os.kill(broker.pid, signal.SIGHUP)
    wait_until(lambda: len(re.findall(expected, broker.log)) >= times)


def test_certificates_are_replaced_under_load_and_nobody_is_dropped(authority: Authority) -> None:
    problems: list[KafkaError] = []
    delivered: list[bytes] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is None:
            delivered.append(message.value() or b"")
        else:
            problems.append(error)

    with Broker(**settings(authority, "kafka:SSL")) as broker:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SSL",
                "ssl.ca.location": authority.truststore,
                "error_cb": problems.append,
                "linger.ms": 1,
            }
        )
        stop = threading.Event()
        sent = 0

        def keep_sending() -> None:
            nonlocal sent
            while not stop.is_set():
                producer.produce("t", str(sent).encode(), on_delivery=report)
                sent += 1
                producer.poll(0.001)

        sending = threading.Thread(target=keep_sending)
        sending.start()
        try:
            before = serial_shown(broker, authority)
            for number in range(3):
                authority.keystore()
                hang_up(broker, "loaded the certificates of the kafka listener again", number + 1)
                after = serial_shown(broker, authority)
                assert after != before
                before, count = after, len(delivered)
                wait_until(lambda: len(delivered) > count)  # noqa: B023
            Path(authority.keystore()).write_text("not a certificate")
            hang_up(broker, r"certificates of the kafka listener stay as they were: .*broker\.pem: ", 1)
            assert serial_shown(broker, authority) == before
        finally:
            stop.set()
            sending.join()
        assert producer.flush(DEADLINE_S) == 0
    assert not problems
    assert delivered == [str(number).encode() for number in range(sent)]


def test_brokers_talk_over_tls_and_refuse_strangers(authority: Authority, tmp_path: Path) -> None:
    secured = settings(authority, "peer:SSL")
    with Cluster(3, **secured) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        errors: list[KafkaError | None] = []
        for number in range(100):
            producer.produce("t", str(number), on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(DEADLINE_S) == 0
        assert errors == [None] * 100
        cluster.kill(1)
        cluster.restart(1)
        cluster.wait_until_healthy()

        strangers = Authority(tmp_path, "strangers")
        foreign = {**secured, "ssl_keystore_location": strangers.keystore("foreign")}
        for wrong in (foreign, {"listener_security_protocol_map": ""}):
            stranger = Broker(join=cluster.bootstrap, join_timeout_ms=1500, **wrong)
            with pytest.raises(BrokerFailed, match="the cluster could not be joined"), stranger:
                pass
        assert "no TLS with client 127.0.0.1:" in "".join(broker.log for broker in cluster.brokers)


def test_a_broker_joins_through_a_listener_with_tls(authority: Authority) -> None:
    secured = settings(authority, "kafka:SSL,peer:SSL")
    with Broker(**secured) as first, Broker(join=first.bootstrap, **secured) as second:
        assert second.port != first.port


def test_a_hang_up_during_the_start_is_remembered(authority: Authority) -> None:
    secured = settings(authority, "kafka:SSL,peer:SSL")
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    second = Broker(join=f"127.0.0.1:{port}", join_timeout_ms=60_000, **secured)
    second.launch()
    try:
        wait_until(lambda: "joining the cluster failed" in second.log)
        hang_up(second, "will load the certificates again when it is up", 1)
        with Broker(kafka_port=port, **secured):
            second.wait_until_ready()
            wait_until(lambda: "loaded the certificates of the kafka listener again" in second.log)
            hang_up(second, "loaded the certificates of the kafka listener again", 2)
            second.stop()
    finally:
        second.kill()
        second.close()


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ("kafka:TLS", "LISTENER:PROTOCOL pairs"),
        ("dmqp:SSL", "LISTENER:PROTOCOL pairs"),
        ("kafka:SSL,kafka:PLAINTEXT", "LISTENER:PROTOCOL pairs"),
        ("kafka", "LISTENER:PROTOCOL pairs"),
        ("kafka:SSL", r"needs ssl\.keystore\.location"),
    ],
)
def test_a_map_that_makes_no_sense_is_refused(mapping: str, problem: str) -> None:
    with pytest.raises(SettingError, match=problem):
        Settings(listener_security_protocol_map=mapping)


def test_certificates_of_others_need_an_authority_of_ones_own() -> None:
    for more in ({"listener_security_protocol_map": "peer:SSL"}, {"ssl_client_auth": "required"}):
        with pytest.raises(SettingError, match=r"need ssl\.truststore\.location"):
            Settings(ssl_keystore_location="broker.pem", **more)  # type: ignore[arg-type]


def test_a_broker_does_not_start_with_bad_certificates(authority: Authority, tmp_path: Path) -> None:
    given = settings(authority, "kafka:SSL", ssl_keystore_location=authority.expired(), data_dir=str(tmp_path / "data"))
    with pytest.raises(CannotStart, match=r"expired\.pem: certificate has expired"):
        asyncio.run(_start(Settings(**given)))


async def _start(given: Settings) -> None:
    await start_broker(system_ports(), given)


def test_changed_files_are_noticed(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(certificates_module, "CHECK_S", 0.01)

    async def check() -> None:
        watched = Certificates(system_ports(), Settings(**settings(authority, "kafka:SSL,peer:SSL")))
        watching = asyncio.ensure_future(watched.watch())
        await asyncio.sleep(0.05)
        assert not caplog.records
        authority.keystore(until=datetime.now(UTC) + timedelta(days=3))
        async with asyncio.timeout(DEADLINE_S):
            while len(caplog.records) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        watching.cancel()

    with caplog.at_level(logging.INFO):
        asyncio.run(check())
    keystore = authority.truststore.replace("authority", "broker")
    assert [record.message for record in caplog.records] == [
        f"loaded the certificates of the {KAFKA_LISTENER} listener again",
        f"loaded the certificates of the {PEER_LISTENER} listener again",
        f"the certificate in {keystore} expires in 3.0 days: replace the file",
    ]


@simulated(
    listener_security_protocol_map="peer:SSL",
    ssl_keystore_location="broker.pem",
    ssl_truststore_location="authority.pem",
)
async def test_simulated_brokers_refuse_peers_without_tls(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    stranger = brokers.world.machine("stranger")
    net, port = stranger.boot().net, brokers[1].peer_port
    with pytest.raises(ConnectionError, match="only one side uses TLS"):
        await stranger.run(net.connect(asyncio.Protocol, "b1", port))
    for files, problem in (
        (TlsFiles(truststore="authority.pem"), "the client has no certificate"),
        (TlsFiles(truststore="another.pem", keystore="foreign.pem"), "does not trust"),
    ):
        with pytest.raises(ConnectionError, match=problem):
            await stranger.run(net.connect(asyncio.Protocol, "b1", port, net.load_tls(files)))
