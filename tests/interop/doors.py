"""A client for each door, all with the same two methods: put values into a topic, and get them out.

The topic is `dmqp-ID`, with one partition, which all doors reach: Kafka's and gRPC's clients and the REST API read it
from its beginning; DMQP pops it.
"""

import base64
import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S: Final = 30.0
DMQP_CLIENT: Final = Path(__file__).parents[2] / "compat" / "dmqp" / "dmqp_client.py"
Values = Sequence[bytes]


class Door(Protocol):
    def put(self, topic_id: int, values: Values) -> None:
        """Returns when all are acknowledged."""

    def get(self, topic_id: int, count: int) -> list[bytes]: ...


@contextmanager
def gateway(upstream: str, folder: Path, *words: str) -> Iterator[dict[str, str]]:
    """A gateway with all doors, and its endpoints; it keeps what its doors make in this folder."""
    ports = ["--http-port", "0", "--grpc-port", "0", "--dmqp-port", "0"]
    command = [sys.executable, "-m", "tailrace", "gateway", "--upstream", upstream, *ports, "--data-dir", str(folder)]
    process = subprocess.Popen(
        [*command, *words, "--until-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if not name.startswith("TAILRACE_")},
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready = process.stdout.readline().split()
        assert ready[:1] == ["ready"]
        yield dict(one.split("=", 1) for one in ready[1:])
    finally:
        process.stdin.close()
        assert process.wait(DEADLINE_S) == 0
        process.stdout.close()


def make_topic(bootstrap: str, topic_id: int, replicas: int = 1) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap})
    for future in client.create_topics([NewTopic(topic(topic_id), 1, replicas)]).values():
        future.result(DEADLINE_S)


def topic(topic_id: int) -> str:
    return f"dmqp-{topic_id}"


class KafkaClient:
    def __init__(self, address: str, _: Path) -> None:
        self._address = address

    def put(self, topic_id: int, values: Values) -> None:
        producer = Producer({"bootstrap.servers": self._address, "linger.ms": 0})
        for value in values:
            producer.produce(topic(topic_id), value, partition=0)
        assert producer.flush(DEADLINE_S) == 0

    def get(self, topic_id: int, count: int) -> list[bytes]:
        consumer = Consumer({"bootstrap.servers": self._address, "group.id": "doors", "enable.auto.commit": False})
        try:
            consumer.assign([TopicPartition(topic(topic_id), 0, 0)])
            got = consumer.consume(count, DEADLINE_S)
            return [one.value() or b"" for one in got]
        finally:
            consumer.close()


class RestClient:
    def __init__(self, address: str, _: Path) -> None:
        self._url = f"http://{address}/v1/topics"

    def put(self, topic_id: int, values: Values) -> None:
        records = [{"value": {"base64": base64.b64encode(value).decode()}} for value in values]
        self._call(f"/{topic(topic_id)}/records", {"records": records})

    def get(self, topic_id: int, count: int) -> list[bytes]:
        where = f"/{topic(topic_id)}/partitions/0/records?limit={count}&wait_ms=10000&max_bytes=4194304&form=base64"
        return [base64.b64decode(one["value"]["base64"]) for one in self._call(where)["records"]]

    def _call(self, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{path}", data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            return json.load(answer)


class GrpcClient:
    def __init__(self, address: str, _: Path) -> None:
        self._channel = import_module("grpc").insecure_channel(address)
        schema = import_module("tailrace.doors.grpc.schema").load_schema()
        self._v1, self._queue = schema.v1, schema.queue

    def put(self, topic_id: int, values: Values) -> None:
        v1 = self._v1
        request = v1.ProduceRequest(topic=topic(topic_id), records=[v1.NewRecord(value=value) for value in values])
        self._call("tailrace.v1.Producer/Produce", request, v1.ProduceResponse)

    def get(self, topic_id: int, count: int) -> list[bytes]:
        return [one.value for one in self.records(topic(topic_id), count)]

    def records(self, name: str, count: int) -> list[Any]:
        v1, found, offset = self._v1, list[Any](), 0
        while len(found) < count:
            request = v1.FetchRequest(topic=name, partition=0, offset=offset, max_wait_ms=10_000)
            answer = self._call("tailrace.v1.Consumer/Fetch", request, v1.FetchResponse)
            found += answer.records
            assert answer.next_offset > offset
            offset = answer.next_offset
        return found

    def queued(self, name: str, count: int) -> list[Any]:
        """Messages by the service MessageQueue."""
        request = self._queue.ConsumeMessagesRequest(group_id="doors", topic=name, start_offset=0, max_messages=count)
        answer = self._call("message_queue.MessageQueue/ConsumeMessages", request, self._queue.ConsumeMessagesResponse)
        assert answer.success, answer.error_message
        return list(answer.messages)

    def _call(self, method: str, request: Any, response: Any) -> Any:
        call = self._channel.unary_unary(
            f"/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        return call(request, timeout=DEADLINE_S)


class DmqpClient:
    def __init__(self, address: str, data_dir: Path) -> None:
        self._address = address
        self._certificate = str(data_dir / "dmqp-certificate.pem")

    def put(self, topic_id: int, values: Values) -> None:
        with self._connected() as client:
            assert client.push_all(topic_id, values) == len(values)

    def get(self, topic_id: int, count: int) -> list[bytes]:
        return [one.payload for one in self.messages(topic_id, count)]

    def messages(self, topic_id: int, count: int) -> list[Any]:
        with self._connected() as client:
            found = [client.pop(topic_id) for _ in range(count)]
            assert client.pop(topic_id) is None
        return found

    def _connected(self) -> Any:
        host, _, port = self._address.rpartition(":")
        return _dmqp().Client(host, int(port), ca_file=self._certificate)


CLIENTS: Final[Mapping[str, Callable[[str, Path], Door]]] = MappingProxyType(
    {"kafka": KafkaClient, "http": RestClient, "grpc": GrpcClient, "dmqp": DmqpClient}
)


def connect(door: str, endpoints: Mapping[str, str], data_dir: Path) -> Door:
    """A client of this door; `data_dir` is that of the process that serves it."""
    return CLIENTS[door](endpoints[door], data_dir)


def _dmqp() -> Any:
    """The client that users copy, from where they copy it."""
    if "dmqp_client" not in sys.modules:
        found = importlib.util.spec_from_file_location("dmqp_client", DMQP_CLIENT)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules["dmqp_client"] = module
        found.loader.exec_module(module)
    return sys.modules["dmqp_client"]
