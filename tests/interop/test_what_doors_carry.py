"""The table of docs/doors.md: what clients of each door get of a record that a client of Kafka has written."""

import base64
import json
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.doors.client_doors import CLIENT_DOORS
from tailrace.testing import Broker
from tests.interop.doors import DEADLINE_S, DmqpClient, GrpcClient, make_topic, topic

pytestmark = pytest.mark.skipif(
    not all(one.is_installed for one in CLIENT_DOORS), reason="needs the packages of all doors"
)


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker(http_port=0, grpc_port=0, dmqp_port=0, fsync="never") as broker:
        yield broker


# What each door shows of a record with everything, and whether it tells a record without a value from an empty one


KEY, HEADERS, TIMESTAMP_MS, BYTES = b"table 4", [("trace", b"\xff\x01")], 1_700_000_000_123, bytes(range(256))


def test_the_table_of_the_docs_is_what_doors_carry(served: Broker) -> None:
    found = {door: read(served, number) for number, (door, read) in enumerate(READERS.items(), 100)}
    page = (Path(__file__).parents[2] / "docs" / "doors.md").read_text()
    lines = page.split("| door | any bytes")[1].split("\n\n")[0].splitlines()[2:]
    told = {cells[0]: cells[1:] for cells in ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)}
    assert told == found


def write_with_kafka(broker: Broker, topic_id: int) -> str:
    """Three records in one batch: one with everything, an empty value, no value.

    In two batches, the old timestamp of the first would begin a new segment; a read may end at the end of a segment.
    """
    make_topic(broker.bootstrap, topic_id)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 10_000})  # until the flush
    producer.produce(topic(topic_id), BYTES, KEY, 0, headers=[*HEADERS], timestamp=TIMESTAMP_MS)
    for value in (b"", None):
        producer.produce(topic(topic_id), value, partition=0)
    assert producer.flush(DEADLINE_S) == 0
    return topic(topic_id)


def cells(value: object, empty: object, none: object, key: object, headers: object, timestamp: object) -> list[str]:
    times = {TIMESTAMP_MS: "ms", TIMESTAMP_MS // 1000: "s"}
    return [
        "yes" if value == BYTES else "no",
        "yes" if empty != none else "no",
        "yes" if key in (KEY, KEY.decode()) else "no",
        "yes" if headers in (HEADERS, [("trace", base64.b64encode(HEADERS[0][1]).decode())]) else "no",
        times.get(timestamp, "no") if isinstance(timestamp, int) else "no",
    ]


def read_kafka(broker: Broker, topic_id: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "doors", "enable.auto.commit": False})
    consumer.assign([TopicPartition(write_with_kafka(broker, topic_id), 0, 0)])
    one, empty, none = consumer.consume(3, DEADLINE_S)
    consumer.close()
    return cells(one.value(), empty.value(), none.value(), one.key(), one.headers(), one.timestamp()[1])


def read_rest(broker: Broker, topic_id: int) -> list[str]:
    name = write_with_kafka(broker, topic_id)
    url = f"http://{broker.endpoints['http']}/v1/topics/{name}/partitions/0/records?wait_ms=10000"
    one, empty, none = json.load(urllib.request.urlopen(url, timeout=DEADLINE_S))["records"]
    value = base64.b64decode(one["value"]["base64"])
    headers = [(header["name"], header["value"]["base64"]) for header in one["headers"]]
    return cells(value, empty["value"], none["value"], one["key"], headers, one["timestamp"])


def read_http_queue(broker: Broker, topic_id: int) -> list[str]:
    name = write_with_kafka(broker, topic_id)

    def call(path: str, **parameters: object) -> dict[str, object]:
        url = f"http://{broker.endpoints['http']}{path}?{urllib.parse.urlencode({'topic': name, **parameters})}"
        method = "POST" if path.endswith("register") else "GET"
        request = urllib.request.Request(url, method=method)
        answer: dict[str, object] = json.load(urllib.request.urlopen(request, timeout=DEADLINE_S))
        return answer

    consumer = call("/consumer/register")["consumer_id"]
    one, empty, none = [call("/consumer/consume", consumer_id=consumer) for _ in range(3)]
    value = base64.b64decode(str(one["message_base64"]))
    return cells(value, empty["message"], none["message"], one.get("key"), one.get("headers"), one.get("timestamp"))


def read_grpc(broker: Broker, topic_id: int) -> list[str]:
    client = GrpcClient(broker.endpoints["grpc"], broker.data_dir)
    one, empty, none = client.records(write_with_kafka(broker, topic_id), 3)
    no_value = None if not none.HasField("value") else none.value
    headers = [(header.name, header.value) for header in one.headers]
    return cells(one.value, empty.value, no_value, one.key, headers, one.timestamp_ms)


def read_message_queue(broker: Broker, topic_id: int) -> list[str]:
    client = GrpcClient(broker.endpoints["grpc"], broker.data_dir)
    one, empty, none = client.queued(write_with_kafka(broker, topic_id), 3)
    headers = getattr(one, "headers", None)
    return cells(one.value.encode(), empty.value, none.value, one.key, headers, one.timestamp)


def read_dmqp(broker: Broker, topic_id: int) -> list[str]:
    write_with_kafka(broker, topic_id)
    one, empty, none = DmqpClient(broker.endpoints["dmqp"], broker.data_dir).messages(topic_id, 3)
    return cells(one.payload, empty.payload, none.payload, None, None, one.timestamp)


READERS: Final[Mapping[str, Callable[[Broker, int], list[str]]]] = MappingProxyType(
    {
        "Kafka": read_kafka,
        "REST API": read_rest,
        "queue over HTTP": read_http_queue,
        "gRPC `tailrace.v1`": read_grpc,
        "gRPC `MessageQueue`": read_message_queue,
        "DMQP": read_dmqp,
    }
)
