"""`tailrace produce`: send each line of standard input as a message."""

import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailrace.cli.client.client_config import Access, Brokers, ClientConfig, access_of
from tailrace.cli.client.kafka_client import (
    Json,
    asking,
    partitions_of,
    producer,
    sentence,
)
from tailrace.cli.failure import Failed, Misused
from tailrace.cli.output import print_json, progress, say

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

Headers = list[tuple[str, str | bytes | None]]
DELIVERY_TIMEOUT_MS: Final = 30_000
CREATION_TIMEOUT_S: Final = 2.0
CREATION_POLL_S: Final = 0.1
PROGRESS_EVERY: Final = 1000


class Acks(StrEnum):
    all = "all"
    leader = "1"
    none = "0"


class Compression(StrEnum):
    none = "none"
    gzip = "gzip"
    snappy = "snappy"
    lz4 = "lz4"
    zstd = "zstd"


AcksOption = Annotated[
    Acks, typer.Option("--acks", "-a", help="Acknowledged by: all in-sync replicas, the leader (1), none (0).")
]
CompressionOption = Annotated[Compression, typer.Option("--compression", "-z", help="Compression of batches.")]


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to send to.")],
    key_separator: Annotated[
        str | None,
        typer.Option("--key-separator", "-k", metavar="TEXT", help="Text between key and value on each line."),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="Header of every message; may be repeated."),
    ] = None,
    partition: Annotated[
        int, typer.Option("--partition", "-p", min=-1, help="Partition of all messages; -1: chosen by key.")
    ] = -1,
    acks: AcksOption = Acks.all,
    compression: CompressionOption = Compression.none,
    json: Json = False,
    bootstrap: Brokers = "",
    client_config: ClientConfig = "",
) -> None:
    """Send each line of standard input as a message.

    On Ctrl-C the lines read so far are sent and counted; the exit code is then 130.

    \b
    Examples:
      echo hello | tailrace produce greetings
      printf 'ann:3 apples\\nbob:1 pear\\n' | tailrace produce orders --key-separator :
      echo hello | tailrace produce greetings --bootstrap broker.example:9093 --client-config client.properties
      tailrace produce events --header source=import --compression zstd < events.jsonl
    """
    headers = [_header(text) for text in header or ()]
    if key_separator == "":
        raise Misused("--key-separator is empty: it must have at least one character, such as ':'.")
    settings = {
        "acks": acks.value,
        "enable.idempotence": acks is Acks.all,  # retries neither duplicate nor reorder messages
        "compression.type": compression.value,
        "linger.ms": 5,
        "message.timeout.ms": DELIVERY_TIMEOUT_MS,
    }
    access = access_of(bootstrap, client_config)
    client = producer(access, settings)
    _check_topic(client, topic, partition, access)
    delivery = _Delivery(client, topic, partition, headers)
    interrupted = False
    try:
        with asking(access, f"send to {topic}"):
            _send_lines(delivery, key_separator)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        delivery.finish()
    if delivery.error is not None:
        raise Failed(f"cannot send to {topic}: {sentence(delivery.error)}; {delivery.sent} messages were sent.")
    if json:
        print_json({"topic": topic, "sent": delivery.sent})
    else:
        say(f"sent {delivery.sent} {'message' if delivery.sent == 1 else 'messages'} to {topic}")
    if interrupted:
        raise KeyboardInterrupt


def _check_topic(client: "Producer", topic: str, partition: int, access: Access) -> None:
    """Fail early if the topic does not exist and is not auto-created; sending would retry until its timeout."""
    deadline = time.monotonic() + CREATION_TIMEOUT_S
    while True:
        try:
            numbers = partitions_of(client.list_topics, topic, access)
        except Failed:
            if time.monotonic() > deadline:
                raise
            time.sleep(CREATION_POLL_S)  # the broker may still be creating the topic
        else:
            break
    if partition not in (-1, *numbers):
        raise Failed(f"{topic} has no partition {partition}: its partitions are 0 to {len(numbers) - 1}.")


def _send_lines(delivery: "_Delivery", key_separator: str | None) -> None:
    separator = key_separator.encode() if key_separator is not None else None
    typed = sys.stdin.isatty()
    if typed:
        say("Type messages, one per line; Ctrl-D ends.")
    with progress(shown=not typed) as bar:
        task = bar.add_task("sent", total=None)
        for number, line in enumerate(_lines(), 1):
            key, value = _split(line, separator, number)
            delivery.send(key, value)
            if delivery.error is not None:
                return
            if number % PROGRESS_EVERY == 0:
                bar.update(task, completed=number)


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line.removesuffix(b"\n").removesuffix(b"\r")


def _split(line: bytes, separator: bytes | None, number: int) -> tuple[bytes | None, bytes]:
    if separator is None:
        return None, line
    key, found, value = line.partition(separator)
    if not found:
        raise Failed(
            f"line {number} has no key separator {separator.decode()!r}; the lines before it were sent.\n"
            "Correct the line, or send without --key-separator."
        )
    return key, value


def _header(text: str) -> tuple[str, str | bytes | None]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Misused(f"--header {text}: it must be NAME=VALUE, such as source=import.")
    return name, value.encode()


class _Delivery:
    """Sends messages and counts the acknowledged ones."""

    def __init__(self, client: "Producer", topic: str, partition: int, headers: Headers) -> None:
        self.sent = 0
        self.error: KafkaError | None = None  # of the first message that failed
        self._client = client
        self._topic = topic
        self._partition = partition
        self._headers = headers

    def send(self, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._client.produce(
                    self._topic,
                    value=value,
                    key=key,
                    partition=self._partition,
                    headers=self._headers,
                    on_delivery=self._delivered,
                )
            except BufferError:  # librdkafka's queue is full: wait for acknowledgements
                self._client.poll(0.1)
            else:
                self._client.poll(0)
                return

    def finish(self) -> None:
        self._client.flush()

    def _delivered(self, error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            self.sent += 1
        elif self.error is None:
            self.error = error
