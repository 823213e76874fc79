"""Messages go in: every compression and acknowledgement, and come out byte for byte."""

import random
import time
from collections.abc import Callable

import pytest

from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.drivers.kafka_python import KafkaPython
from tests.interop.feature import feature
from tests.interop.messages import COMPRESSIONS, Acks, Compression, Message, Sending
from tests.interop.shapes import TopicPlan

DEFAULT_MAX_BATCH_BYTES = 1_048_588
BATCH_OVERHEAD_BYTES = 72  # a header, and what is around the value of one record of this size without key and headers


def numbered(count: int) -> list[Message]:
    """Compressible, each one different."""
    return [Message(key=f"key-{n}".encode(), value=f"value {n} ".encode() * 20) for n in range(count)]


def assert_same(client: Client, topic: str, messages: list[Message]) -> None:
    received = client.consume(topic, len(messages))
    assert [one.offset for one in received] == list(range(len(messages)))
    assert [one.content for one in received] == [(m.key, m.value, m.headers) for m in messages]


@pytest.mark.parametrize("compression", COMPRESSIONS)
@feature("compression {compression}, stored as it was sent", "produce")
def test_compression(
    client: Client, compression: Compression, topic: str, clients: Callable[[type[Client]], Client]
) -> None:
    messages = numbered(300)
    client.produce(topic, messages, Sending(compression=compression))
    assert_same(client, topic, messages)
    sent = sum(len(message.value or b"") for message in messages)
    stored = clients(KafkaPython).stored_bytes(topic)
    assert stored > sent if compression == "none" else stored < sent / 2


@pytest.mark.parametrize("acks", [0, 1, "all"])
@feature("acks={acks}", "produce")
def test_acks(client: Client, acks: Acks, topic: str) -> None:
    messages = numbered(50)
    offsets = client.produce(topic, messages, Sending(acks=acks))
    assert acks == 0 or offsets in ([], list(range(50)))
    assert_same(client, topic, messages)


@pytest.mark.parametrize("compression", ["none", "lz4"])
@feature("idempotent, compression {compression}", "produce")
def test_idempotent(client: Client, compression: Compression, topic: str) -> None:
    messages = numbered(200)
    client.produce(topic, messages, Sending(idempotent=True, compression=compression))
    assert_same(client, topic, messages)


@feature("an idempotent producer after another goes on where it stopped", "produce")
def test_two_idempotent_producers(client: Client, topic: str) -> None:
    messages = numbered(20)
    client.produce(topic, messages[:10], Sending(idempotent=True))
    client.produce(topic, messages[10:], Sending(idempotent=True))
    assert_same(client, topic, messages)


@feature("messages with and without keys, null values", "produce")
def test_nulls(client: Client, topic: str) -> None:
    messages = [
        Message(key=b"k", value=b"v"),
        Message(key=None, value=b"no key"),
        Message(key=b"tombstone", value=None),
        Message(key=b"k", value=b"again"),
    ]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("empty keys and values are not null", "produce", "empty is not null")
def test_empty(client: Client, topic: str) -> None:
    messages = [Message(key=b"", value=b""), Message(key=None, value=b""), Message(key=b"", value=None)]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("any bytes in keys and values", "produce", "any bytes")
def test_any_bytes(client: Client, topic: str) -> None:
    dice = random.Random(7)
    messages = [Message(key=dice.randbytes(n), value=dice.randbytes(n * 37)) for n in range(1, 60)]
    client.produce(topic, messages, Sending(compression="gzip"))
    assert_same(client, topic, messages)


@feature("headers, in order, a name more than once", "produce")
def test_headers(client: Client, topic: str) -> None:
    headers = (("trace", b"abc"), ("größe", b"42"), ("trace", b"def"))
    messages = [Message(value=b"one", headers=headers), Message(value=b"two", headers=headers)]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("a header without a value", "produce", "null headers")
def test_null_header(client: Client, topic: str) -> None:
    messages = [Message(value=b"v", headers=(("nothing", None), ("something", b"s")))]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("headers with any bytes, empty ones, none at all", "produce", "any bytes")
def test_binary_headers(client: Client, topic: str) -> None:
    messages = [
        Message(value=b"binary", headers=(("bytes", bytes(range(256))), ("empty", b""))),
        Message(value=b"none"),
        Message(value=b"many", headers=tuple((f"h{n}", str(n).encode()) for n in range(100))),
    ]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@feature("the sender's timestamps, compression {compression}", "produce", "timestamps")
def test_timestamps(client: Client, compression: Compression, topic: str) -> None:
    stamps = [1_600_000_000_000, 1_600_000_000_001, 1_500_000_000_000, 1, 1_700_000_000_000]
    messages = [Message(value=b"v", timestamp_ms=stamp) for stamp in stamps]
    client.produce(topic, messages, Sending(compression=compression))
    received = client.consume(topic, len(stamps))
    assert [one.timestamp_ms for one in received] == stamps
    assert [one.append_time for one in received] == [False] * len(stamps)


@feature("a message that names no time bears the sender's now", "produce")
def test_now(client: Client, topic: str) -> None:
    before = time.time_ns() // 1_000_000
    client.produce(topic, [Message(value=b"v")])
    (received,) = client.consume(topic, 1)
    assert before - 1 <= received.timestamp_ms <= time.time_ns() // 1_000_000 + 1


@pytest.mark.parametrize("compression", ["none", "gzip"])
@feature("message.timestamp.type=LogAppendTime, compression {compression}", "produce")
def test_append_time(client: Client, compression: Compression, name: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(settings={"message.timestamp.type": "LogAppendTime"}))
    eventually(lambda: name in bench.list_topics())
    before = time.time_ns() // 1_000_000
    stamp = 1_600_000_000_000 if client.offers("timestamps") else None
    client.produce(name, [Message(value=b"v", timestamp_ms=stamp)] * 3, Sending(compression=compression))
    received = client.consume(name, 3)
    assert all(before <= one.timestamp_ms <= time.time_ns() // 1_000_000 for one in received)
    assert all(one.append_time in (True, None) for one in received)


@feature("messages near 1 MB with the client's own limits", "produce")
def test_large(client: Client, topic: str) -> None:
    dice = random.Random(11)
    messages = [Message(key=b"large", value=dice.randbytes(999_000)) for _ in range(3)]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("the largest batch that max.message.bytes allows, to the byte", "produce")
def test_largest(client: Client, topic: str) -> None:
    message = Message(value=random.Random(13).randbytes(DEFAULT_MAX_BATCH_BYTES - BATCH_OVERHEAD_BYTES))
    client.produce(topic, [message], Sending(max_bytes=4_000_000))
    assert_same(client, topic, [message])


@feature("5,000 messages keep their order over many batches", "produce")
def test_order(client: Client, topic: str) -> None:
    messages = [Message(value=b"%d" % n) for n in range(5_000)]
    client.produce(topic, messages)
    assert_same(client, topic, messages)


@feature("every partition has its own offsets", "produce")
def test_partitions(client: Client, name: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(partitions=3))
    eventually(lambda: name in bench.list_topics())
    for partition in range(3):
        client.produce(name, [Message(value=b"in %d" % partition)] * (partition + 1), partition=partition)
    for partition in range(3):
        received = client.consume(name, partition + 1, partition=partition)
        assert [(one.offset, one.value) for one in received] == [
            (offset, b"in %d" % partition) for offset in range(partition + 1)
        ]
