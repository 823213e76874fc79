"""The queue API at real brokers: every endpoint's JSON and texts, and requests that are repeated."""

import base64
import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tailrace.testing import Broker

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Client:
    def __init__(self, address: str) -> None:
        self._connection = http.client.HTTPConnection(address, timeout=60)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Any = None) -> tuple[int, Any]:
        self._connection.request(method, path, body, headers or {})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def post(self, path: str, **given: Any) -> tuple[int, Any]:
        return self.ask("POST", path, json.dumps(given).encode(), JSON)

    def get(self, path: str, **given: Any) -> tuple[int, Any]:
        return self.ask("GET", f"{path}?{urlencode(given)}")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http_port=0, fsync="never") as broker:
        yield broker


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker.endpoints["http"])


def success(message: str = "", **more: Any) -> tuple[int, Any]:
    return 200, {"status": "success", "message": message, **more}


def failure(message: str) -> tuple[int, Any]:
    return 400, {"status": "failure", "message": message}


def register(client: Client, kind: str, topic: str) -> int:
    status, answer = client.post(f"/{kind}/register", topic=topic)
    assert status == 200, answer
    return int(answer[f"{kind}_id"])


def test_topics() -> None:
    with Broker(http_port=0, fsync="never") as broker:
        client = Client(broker.endpoints["http"])
        assert client.get("/topics") == failure("No topics found")
        assert client.post("/topics", topic_name="a") == success("Topic created.")
        assert client.post("/topics", topic_name="a") == failure("Topic already exists.")
        assert client.post("/topics", topic_name="b", partitions=3) == success("Topic created.")
        register(client, "producer", "c")
        assert client.get("/topics") == success(topics=["a", "b", "c"])
        assert client.get("/topics/partition", topic_name="b") == success(partitions=[0, 1, 2])
        assert client.get("/topics/partition", topic="a") == success(partitions=[0])
        assert client.get("/topics/partition", topic="none") == failure("Topic doesn't exist.")


def test_ids_are_known_after_a_restart() -> None:
    with Broker(http_port=0, fsync="never") as broker:
        client = Client(broker.endpoints["http"])
        producer = register(client, "producer", "t")
        consumer = register(client, "consumer", "t")
        assert producer != consumer
        assert client.post("/producer/produce", topic="t", producer_id=producer, message="one") == success()
        broker.stop()
        broker.start()
        client = Client(broker.endpoints["http"])
        assert client.post("/producer/produce", topic="t", producer_id=producer, message="two") == success()
        assert client.get("/consumer/consume", topic="t", consumer_id=consumer) == success("one")
        assert client.get("/consumer/consume", topic="t", consumer_id=consumer) == success("two")


def test_what_was_seen_is_written_soon() -> None:
    with Broker(http_port=0, fsync="never") as broker:
        client = Client(broker.endpoints["http"])
        producer, consumer = register(client, "producer", "t"), register(client, "consumer", "t")
        deadline = time.monotonic() + 60
        while not (found := client.get("/health")[1])["consumers"]:
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        assert [(one["id"], one["alive"]) for one in found["brokers"]] == [(1, True)]
        assert [(one["id"], one["topic"]) for one in found["producers"]] == [(producer, "t")]
        (seen,) = found["consumers"]
        assert (seen["id"], seen["topic"]) == (consumer, "t")
        assert abs(seen["last_seen_ms"] - time.time() * 1000) < 120_000
        command = [sys.executable, "-m", "tailrace", "cluster", "health", "--json", "--bootstrap", broker.bootstrap]
        told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        assert [(one["kind"], one["id"]) for one in told] == [
            ("broker", 1),
            ("consumer", consumer),
            ("producer", producer),
        ]
        assert client.get("/topics") == success(topics=["t"])


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"topic": "forms", "producer_id": %d, "message": "m"}', JSON),
        (b'{"topic": "forms", "producer_id": "%d", "message": "m"}', FORM),  # what `curl -d` says of its JSON
        (b"topic=forms&producer_id=%d&message=m", FORM),
    ],
)
def test_parameters_come_in_a_body(client: Client, body: bytes, headers: Any) -> None:
    producer = register(client, "producer", "forms")
    assert client.ask("POST", "/producer/produce", body % producer, headers) == success()


def test_parameters_come_in_the_query_and_in_the_body_of_a_get(client: Client) -> None:
    producer = register(client, "producer", "queries")
    consumer = register(client, "consumer", "queries")
    query = urlencode({"topic": "queries", "producer_id": producer, "message": "ä b"})
    assert client.ask("POST", f"/producer/produce?{query}") == success()
    given = json.dumps({"topic": "queries", "consumer_id": consumer}).encode()
    assert client.ask("GET", "/size", given, JSON) == success(size=1)
    assert client.ask("GET", "/consumer/consume", given, JSON) == success("ä b")


def test_each_consumer_sees_every_message_once_and_in_order(client: Client) -> None:
    producer = register(client, "producer", "once")
    for number in range(5):
        assert client.post("/producer/produce", topic="once", producer_id=producer, message=str(number)) == success()
    for _ in range(2):
        consumer = register(client, "consumer", "once")
        for number in range(5):
            assert client.get("/size", topic="once", consumer_id=consumer) == success(size=5 - number)
            assert client.get("/consumer/consume", topic="once", consumer_id=consumer) == success(str(number))
        assert client.get("/consumer/consume", topic="once", consumer_id=consumer) == failure(
            "No new message is published to once."
        )


def test_a_topic_with_partitions_is_written_in_turn(client: Client) -> None:
    client.post("/topics", topic_name="wide", partitions=3)
    producer, consumer = register(client, "producer", "wide"), register(client, "consumer", "wide")
    for number in range(6):
        client.post("/producer/produce", topic="wide", producer_id=producer, message=str(number))
    for number in range(6, 12):
        client.post("/producer/produce", topic="wide", producer_id=producer, message=str(number), request_id=number - 6)
    found: dict[int, list[int]] = {}
    for partition in range(3):
        for _ in range(4):
            given = {"topic": "wide", "consumer_id": consumer, "partition": partition}
            found.setdefault(partition, []).append(int(client.get("/consumer/consume", **given)[1]["message"]))
    assert found == {0: [0, 3, 6, 9], 1: [1, 4, 7, 10], 2: [2, 5, 8, 11]}
    assert client.get("/size", topic="wide", consumer_id=consumer) == success(size=0)


def test_what_is_wrong_is_said(client: Client) -> None:
    producer, consumer = register(client, "producer", "wrong"), register(client, "consumer", "wrong")
    register(client, "producer", "other")
    assert client.post("/consumer/register", topic="none") == failure("Topic doesn't exist.")
    assert client.get("/consumer/consume", topic="wrong", consumer_id=999) == failure("Consumer not found.")
    assert client.get("/consumer/consume", topic="wrong", consumer_id=producer) == failure("Consumer not found.")
    assert client.get("/consumer/consume", topic="other", consumer_id=consumer) == failure(
        f"{consumer} did not subscribe to topic - other"
    )
    assert client.get("/consumer/consume", topic="wrong", consumer_id=consumer, partition=7) == failure(
        "Partition 7 not found for - wrong"
    )
    assert client.post("/producer/produce", topic="wrong", producer_id=0, message="") == failure("Producer not found.")
    assert client.post("/producer/produce", topic="wrong", producer_id=producer) == failure(
        "parameter message is missing"
    )
    assert client.post("/topics") == failure("parameter topic_name is missing")
    assert client.post("/topics", topic_name="__x") == failure("topics whose names begin with __ are internal")
    for name in ("a b", "", "x" * 300, "é"):
        assert client.post("/topics", topic_name=name)[0] == 400
    given: dict[str, Any] = {"topic": "wrong", "producer_id": producer, "message": "m"}
    ids: tuple[Any, ...] = (True, 1.5, "1e3", [], {}, 2**70, "9" * 100)
    messages: tuple[Any, ...] = (1, None, [], "\ud800")
    for wrong in [*({"producer_id": one} for one in ids), *({"message": one} for one in messages)]:
        assert client.post("/producer/produce", **given | wrong)[0] == 400
    for body in (b"[" * 100_000, b"{", b"\xff", b"[]", b'{"topic": NaN}', b'{"a": ' + b"9" * 5000 + b"}"):
        status, answer = client.ask("POST", "/topics", body, JSON)
        assert (status, answer["status"]) == (400, "failure")


def test_bytes_that_are_no_text_are_given_in_base64(client: Client) -> None:
    producer, consumer = register(client, "producer", "bytes"), register(client, "consumer", "bytes")
    encoded = base64.b64encode(b"\xff\x00").decode()
    given = {"topic": "bytes", "producer_id": producer}
    assert client.post("/producer/produce", **given, message_base64=encoded) == success()
    assert client.get("/consumer/consume", topic="bytes", consumer_id=consumer) == success(
        "\ufffd\x00", message_base64=encoded
    )
    assert client.post("/producer/produce", **given, message_base64="?") == failure(
        "parameter message_base64 is not base64"
    )


def test_a_numbered_message_is_written_once(client: Client) -> None:
    producer, consumer = register(client, "producer", "numbered"), register(client, "consumer", "numbered")
    given = {"topic": "numbered", "producer_id": producer}
    for number in (0, 0, 1, 1, 1, 2):
        assert client.post("/producer/produce", **given, message=f"m{number}", request_id=number) == success()
    status, answer = client.post("/producer/produce", **given, message="m9", request_id=9)
    assert (status, answer["message"]) == (400, f"request_id 9 of producer {producer} does not follow the last one")
    assert client.get("/size", topic="numbered", consumer_id=consumer) == success(size=3)


def test_a_numbered_request_gets_the_same_message_again(client: Client) -> None:
    producer, consumer = register(client, "producer", "again"), register(client, "consumer", "again")
    for number in range(3):
        client.post("/producer/produce", topic="again", producer_id=producer, message=f"m{number}")
    given = {"topic": "again", "consumer_id": consumer}
    for number in (0, 0, 1, 2, 2, 2):
        assert client.get("/consumer/consume", **given, request_id=number) == success(f"m{number}")
    nothing = failure("No new message is published to again.")
    assert client.get("/consumer/consume", **given, request_id=3) == nothing
    client.post("/producer/produce", topic="again", producer_id=producer, message="m3")
    assert client.get("/consumer/consume", **given, request_id=3) == success("m3")
    client.post("/producer/produce", topic="again", producer_id=producer, message="m4")
    assert client.get("/consumer/consume", **given, request_id=9) == failure(
        f"request_id 9 of consumer {consumer} does not follow the last one: repeat 3, or go on with 4"
    )
    assert client.get("/consumer/consume", **given, request_id=4) == success("m4")
