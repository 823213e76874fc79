"""TLS of the HTTP and gRPC doors, in a broker and in a gateway, by the settings of the other listeners."""

import http.client
import json
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.doors.grpc.schema import load_schema
from tailrace.testing import Broker
from tests.certificates import Authority
from tests.unit.cli.program import running_tailrace
from tests.unit.doors.http.test_http_queue_libraries import load

pytestmark = pytest.mark.skipif(not all(one.is_installed for one in CLIENT_DOORS), reason="needs all doors")

DEADLINE_S = 20.0
MAPPING = "http:SSL,grpc:SSL"
HEALTH = "/grpc.health.v1.Health/Check"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def settings(authority: Authority, **more: str) -> dict[str, Any]:
    return {
        "listener_security_protocol_map": MAPPING,
        "ssl_keystore_location": authority.keystore(),
        "ssl_truststore_location": authority.truststore,
        **more,
    }


class Process:
    """A process with both doors: its addresses, its log, and a way to reload its certificates."""

    def __init__(self, endpoints: dict[str, str], pid: int, log: Callable[[], str]) -> None:
        self.http, self.grpc = endpoints["http"], endpoints["grpc"]
        self.log = log
        self._pid = pid

    def reload(self, expected: str) -> None:
        os.kill(self._pid, signal.SIGHUP)
        deadline = time.monotonic() + DEADLINE_S
        while expected not in self.log():
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def in_broker(folder: Path, given: dict[str, Any]) -> Iterator[Process]:
    with Broker(http_port=0, grpc_port=0, fsync="never", **given) as broker:
        yield Process(dict(broker.endpoints), broker.pid, lambda: broker.log)


@contextmanager
def in_gateway(folder: Path, given: dict[str, Any]) -> Iterator[Process]:
    variables = {f"TAILRACE_{name.upper()}": value for name, value in given.items()}
    words = ("gateway", "--http-port", "0", "--grpc-port", "0", "--data-dir", str(folder / "gateway"))
    lines: list[str] = []
    with (
        Broker(fsync="never") as broker,
        running_tailrace(*words, "--upstream", broker.bootstrap, **variables) as (process, line),
    ):
        assert process.stderr is not None
        reading = threading.Thread(target=lines.extend, args=(process.stderr,))  # line by line, until the process ends
        reading.start()
        yield Process(dict(one.split("=") for one in line.split()[1:]), process.pid, lambda: "".join(lines))
        process.terminate()
        reading.join()


@pytest.fixture(params=[in_broker, in_gateway])
def serving(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[dict[str, Any]], Any]:
    return lambda given: request.param(tmp_path, given)


def client_context(authority: Authority, keystore: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.truststore)
    if keystore:
        context.load_cert_chain(keystore)
    return context


def ask(
    process: Process, authority: Authority, path: str = "/v1/topics", keystore: str = "", **body: str
) -> tuple[int, Any]:
    host, port = process.http.split(":")
    connection = http.client.HTTPSConnection(
        host, int(port), timeout=DEADLINE_S, context=client_context(authority, keystore)
    )
    try:
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    finally:
        connection.close()


def is_serving(process: Process, authority: Authority, keystore: str = "") -> bool:
    """Whether a call of gRPC gets through."""
    own = Path(keystore).read_bytes() if keystore else None
    credentials = grpc.ssl_channel_credentials(Path(authority.truststore).read_bytes(), own, own)
    health = load_schema().health
    with grpc.secure_channel(process.grpc, credentials) as channel:
        check = channel.unary_unary(HEALTH, response_deserializer=health.HealthCheckResponse.FromString)
        return int(check(b"", timeout=DEADLINE_S).status) == 1


def serial_of(address: str) -> str:
    """Of the certificate that new clients get."""
    host, port = address.split(":")
    return ssl.get_server_certificate((host, int(port)))


def test_both_doors_speak_tls_alone(serving: Any, authority: Authority) -> None:
    with serving(settings(authority)) as process:
        assert ask(process, authority, "/topics", topic_name="orders") == (
            200,
            {"status": "success", "message": "Topic created."},
        )
        assert ask(process, authority)[0] == 200
        assert is_serving(process, authority)
        plain = http.client.HTTPConnection(process.http, timeout=DEADLINE_S)
        plain.request("GET", "/topics")
        with pytest.raises((http.client.HTTPException, OSError)):
            plain.getresponse()
        with grpc.insecure_channel(process.grpc) as channel, pytest.raises(grpc.RpcError):
            channel.unary_unary(HEALTH)(b"", timeout=DEADLINE_S)


def test_clients_without_a_certificate_are_refused_if_one_is_required(serving: Any, authority: Authority) -> None:
    own = authority.keystore("client")
    with serving(settings(authority, ssl_client_auth="required")) as process:
        assert ask(process, authority, keystore=own)[0] == 200
        assert is_serving(process, authority, own)
        with pytest.raises((http.client.HTTPException, OSError)):
            ask(process, authority)
        with pytest.raises(grpc.RpcError):
            is_serving(process, authority)


def test_certificates_are_replaced_without_a_restart(serving: Any, authority: Authority) -> None:
    with serving(settings(authority)) as process:
        old = serial_of(process.http)
        assert serial_of(process.grpc) == old
        authority.keystore()  # another one, in the same file
        process.reload("loaded the certificates of the grpc listener again")
        new = serial_of(process.http)
        assert new != old
        assert serial_of(process.grpc) == new
        assert is_serving(process, authority)
        Path(settings(authority)["ssl_keystore_location"]).write_text("no certificate")
        process.reload("the certificates of the grpc listener stay as they were")
        assert serial_of(process.http) == serial_of(process.grpc) == new


def test_an_encrypted_private_key(serving: Any, authority: Authority) -> None:
    given = settings(authority) | {
        "ssl_keystore_location": authority.keystore("locked", password=b"secret"),
        "ssl_key_password": "secret",
    }
    with serving(given) as process:
        assert ask(process, authority)[0] == 200
        assert is_serving(process, authority)


def test_an_http_client_that_ends_its_side_leaves_nothing_in_the_log(serving: Any, authority: Authority) -> None:
    with serving(settings(authority)) as process:
        host, port = process.http.split(":")
        context = client_context(authority)
        with socket.create_connection((host, int(port)), DEADLINE_S) as plain:
            secured = context.wrap_socket(plain, server_hostname=host)
            secured.sendall(b"GET /topics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
            with suppress(ssl.SSLError):  # answers that come after it
                secured.unwrap()
        assert ask(process, authority)[0] == 200
        assert "eof_received" not in process.log()


def test_the_libraries_of_the_http_queue(serving: Any, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", authority.truststore)
    with serving(settings(authority)) as process:
        producer = load("producer_client").MyProducer(["orders"], f"https://{process.http}")
        consumer = load("consumer_client").MyConsumer(["orders"], f"https://{process.http}")
        assert producer.Enqueue("orders", "two coffees") == 0
        assert consumer.Dequeue("orders") == "two coffees"


def test_sighup_loads_the_certificate_of_dmqp_again(authority: Authority) -> None:
    """Also if no other listener of the broker uses TLS."""
    keystore = authority.keystore()
    with Broker(dmqp_port=0, fsync="never", ssl_keystore_location=keystore) as broker:
        before = serial_of(broker.endpoints["dmqp"])
        Path(authority.keystore("next")).replace(keystore)
        Process({"http": "", "grpc": ""}, broker.pid, lambda: broker.log).reload(
            "loaded the certificates of the dmqp listener again"
        )
        assert serial_of(broker.endpoints["dmqp"]) != before
