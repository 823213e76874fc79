"""The gRPC door of a broker process: statuses with details, deadlines, bad input, clients that leave or do not read."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from tailrace.model.limits import GRPC_MESSAGE_MAX_BYTES
from tailrace.testing import Broker
from tests.fuzz.target import failures_in, resident_bytes
from tests.grpc_client import GrpcClient

MiB = 1024 * 1024
DEADLINE_S = 20.0
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc_port=0, fsync="never", grpc_reflection_enable=True) as broker:
        with GrpcClient(broker.endpoints["grpc"]) as client:
            v1 = client.schema.v1
            client.call("tailrace.v1.Topics/CreateTopic", v1.CreateTopicRequest(name="orders", partitions=2))
        yield broker
        assert not failures_in(broker.log)


@pytest.fixture
def client(broker: Broker) -> Iterator[GrpcClient]:
    with GrpcClient(broker.endpoints["grpc"]) as client:
        yield client


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def produce(client: GrpcClient, topic: str = "orders", value: bytes = b"x", count: int = 1, partition: int = 0) -> int:
    v1 = client.schema.v1
    records = [v1.NewRecord(value=value, partition=partition) for _ in range(count)]
    response = client.call("tailrace.v1.Producer/Produce", v1.ProduceRequest(topic=topic, records=records))
    return int(response.written[-1].offset)


def make_topic(client: GrpcClient, name: str) -> None:
    client.call("tailrace.v1.Topics/CreateTopic", client.schema.v1.CreateTopicRequest(name=name, partitions=1))


def test_an_error_has_details_for_programs(client: GrpcClient) -> None:
    v1 = client.schema.v1
    with pytest.raises(grpc.RpcError) as caught:
        client.call("tailrace.v1.Topics/GetTopic", v1.GetTopicRequest(name="none"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    status, info = client.details(caught.value), client.detail(caught.value, "ErrorInfo")
    assert (status.code, status.message) == (5, caught.value.details())
    assert info is not None
    assert (info.domain, info.reason) == ("tailrace", "UNKNOWN_TOPIC_OR_PARTITION")
    with pytest.raises(grpc.RpcError) as caught:
        client.call("tailrace.v1.Producer/Produce", v1.ProduceRequest(topic="orders"))
    violation = client.detail(caught.value, "BadRequest")
    assert violation is not None
    assert violation.field_violations[0].field == "records"


def test_a_deadline_ends_a_call(client: GrpcClient) -> None:
    v1 = client.schema.v1
    make_topic(client, "empty")
    request = v1.FetchRequest(topic="empty", max_wait_ms=50_000)
    assert not client.call("tailrace.v1.Consumer/Fetch", request, timeout_s=1.0).records  # it answers before
    stream = client.stream("tailrace.v1.Consumer/Consume", timeout_s=0.3)
    position = v1.Position(topic="empty", partition=0, offset=0)
    stream.send(v1.ConsumeRequest(start=v1.ConsumeRequest.Start(positions=[position])))
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    stream.end()


def test_what_is_no_message_is_told_so(client: GrpcClient) -> None:
    for wrong in (b"\xff" * 10, b"\x0a\xff", b"\x0a\x02\xff\xfe", b"\x08\x01\x0a"):
        with pytest.raises(grpc.RpcError) as caught:
            client.method("tailrace.v1.Producer/Produce", raw=True)(wrong, timeout=DEADLINE_S)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "tailrace.v1.ProduceRequest" in (caught.value.details() or "")
    produce(client)


def test_fields_that_are_unknown_are_ignored(client: GrpcClient) -> None:
    request = client.schema.queue.BrokerAddressRequest(broker_id="1").SerializeToString() + b"\xfa\x3e\x03new"
    found = client.method("message_queue.MessageQueue/GetBrokerAddress", raw=True)(request, timeout=DEADLINE_S)
    assert found.success


def test_methods_that_are_unknown_are_unimplemented(client: GrpcClient) -> None:
    for path in ("/message_queue.MessageQueue/Drop", "/no.Such/Method", "/tailrace.v1.Producer/produce"):
        with pytest.raises(grpc.RpcError) as caught:
            client.channel.unary_unary(path)(b"", timeout=DEADLINE_S)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_request_over_the_limit_is_refused_alone(broker: Broker, client: GrpcClient) -> None:
    before = resident_bytes(broker.pid)
    for size in (GRPC_MESSAGE_MAX_BYTES + 1, 64 * MiB):
        with pytest.raises(grpc.RpcError) as caught:
            client.method("tailrace.v1.Producer/Produce", raw=True)(bytes(size), timeout=DEADLINE_S)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    produce(client)
    assert resident_bytes(broker.pid) - before < 32 * MiB


def test_a_compressed_bomb_is_refused(broker: Broker, client: GrpcClient) -> None:
    before = resident_bytes(broker.pid)
    with pytest.raises(grpc.RpcError) as caught:
        client.method("tailrace.v1.Producer/Produce", raw=True)(
            bytes(200 * MiB), timeout=DEADLINE_S, compression=grpc.Compression.Gzip
        )
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert resident_bytes(broker.pid) - before < 64 * MiB


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        os.urandom(4096),
        PREFACE + os.urandom(4096),
        PREFACE + b"\xff\xff\xff\x00\x00\x00\x00\x00\x01",  # a frame of 16 MiB
        PREFACE + b"\x00\x00\x00\x01\x05\x00\x00\x00\x01" * 100,  # headers that are none
        PREFACE + b"\x00\x00\x08\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" * 1000,  # pings
        b"",
    ],
    ids=["http1", "noise", "noise after the preface", "huge frame", "empty headers", "pings", "nothing"],
)
def test_bytes_that_are_no_grpc_cost_only_their_sender(broker: Broker, client: GrpcClient, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", broker.port_of("grpc"))) as connection:
        connection.sendall(data)
        produce(client)  # others are served beside it


def test_a_stream_that_is_cancelled_lets_go_of_its_partitions(client: GrpcClient) -> None:
    v1 = client.schema.v1
    make_topic(client, "cancelled")
    produce(client, "cancelled", count=3)
    for _ in range(2):  # the second member gets what the first had
        stream = client.stream("tailrace.v1.Consumer/Consume")
        stream.send(v1.ConsumeRequest(start=v1.ConsumeRequest.Start(group="cancelled", topics=["cancelled"])))
        while stream.receive().WhichOneof("event") != "records":
            pass
        stream.responses.cancel()
        stream.end()


def test_a_client_that_does_not_read_is_sent_no_more(broker: Broker, client: GrpcClient) -> None:
    v1 = client.schema.v1
    make_topic(client, "unread")
    for _ in range(60):
        produce(client, "unread", value=bytes(900_000))
    before = resident_bytes(broker.pid)
    position = v1.Position(topic="unread", partition=0, offset=0)
    streams = []
    for _ in range(4):
        stream = client.stream("tailrace.v1.Consumer/Consume")
        stream.send(v1.ConsumeRequest(start=v1.ConsumeRequest.Start(positions=[position], max_records=1)))
        streams.append(stream)
    grown = []
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        produce(client)
        grown.append(resident_bytes(broker.pid) - before)
    assert max(grown) < 64 * MiB  # of 216 MB
    for stream in streams:
        stream.responses.cancel()
        stream.end()


def test_health_and_reflection(client: GrpcClient) -> None:
    health, reflection = client.schema.health, client.schema.reflection
    assert client.call("grpc.health.v1.Health/Check", health.HealthCheckRequest()).status == 1
    stream = client.stream("grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    stream.send(reflection.ServerReflectionRequest(list_services=""))
    names = [one.name for one in stream.receive().list_services_response.service]
    stream.end()
    assert "message_queue.MessageQueue" in names
    assert "tailrace.v1.Queue" in names


def test_a_broker_that_stops_ends_streams_with_a_status_to_retry_on(tmp_path: Path) -> None:
    with Broker(grpc_port=0, fsync="never", data_dir=tmp_path) as broker:
        with GrpcClient(broker.endpoints["grpc"]) as client:
            make_topic(client, "orders")
            v1 = client.schema.v1
            stream = client.stream("grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
            stream.send(client.schema.reflection.ServerReflectionRequest(list_services=""))
            with pytest.raises(grpc.RpcError) as caught:
                stream.receive()
            assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED  # it was not asked for
            stream.end()
            stream = client.stream("tailrace.v1.Consumer/Consume")
            stream.send(v1.ConsumeRequest(start=v1.ConsumeRequest.Start(group="g", topics=["orders"])))
            assert stream.receive().WhichOneof("event") == "assigned"
            began = time.monotonic()
            broker.stop()
            assert time.monotonic() - began < DEADLINE_S
            with pytest.raises(grpc.RpcError) as caught:
                stream.receive()
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            stream.end()
        assert not failures_in(broker.log)


def test_two_brokers_do_not_share_a_port(broker: Broker, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailrace", "serve", "--kafka-port", "0", "--data-dir", str(tmp_path)]
    port = str(broker.port_of("grpc"))
    done = subprocess.run([*command, "--grpc-port", port], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"the grpc listener: port {port} on 127.0.0.1 is in use" in done.stderr
    assert "--grpc-port" in done.stderr
    assert "E0000" not in done.stderr  # nothing of gRPC's own log
    assert len(done.stderr.splitlines()) < 8


def test_a_closed_door_is_not_imported() -> None:
    program = (
        "import sys; from tailrace.cli.serve import running; from tailrace.doors import client_doors; "
        "print([one for one in sys.modules if one.startswith(('grpc', 'google.protobuf', 'tailrace.doors.grpc'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
