"""`tailrace demo`: see it work. A real broker, a topic, a few messages in and out, and how to go on from there."""

import os
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace import __version__
from tailrace.cli.client import admin, answer, answer_timeout_s, asking, consumer, default_bootstrap, producer, sentence
from tailrace.cli.failure import Failed
from tailrace.cli.reading import Reading

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

    from tailrace.testing.broker import Broker

topic = "demo"
show_timeout_s = 10.0
usual_port = 9092
orders = (("ann", "3 apples"), ("bob", "1 pear"), ("ann", "2 plums"), ("eve", "12 figs"), ("bob", "nothing more"))

how_to_connect = """
Connect any Kafka client to {bootstrap}. In Python (pip install confluent-kafka):

    from confluent_kafka import Producer
    producer = Producer({{"bootstrap.servers": "{bootstrap}"}})
    producer.produce("demo", key="ann", value="4 more apples")
    producer.flush()

On the command line:

    {program} topic list{flag}
    {program} consume demo --from-beginning{flag}
    echo "hello" | {program} produce demo{flag}
    kcat -b {bootstrap} -t demo -C -e
"""


def demo(
    stay: Annotated[bool, typer.Option("--stay", help="Keep the broker up, with its data, until Ctrl-C.")] = False,
    data_dir: Annotated[
        Path, typer.Option("--data-dir", metavar="DIR", help="Where the data lives, with --stay.")
    ] = Path("tailrace-data"),
) -> None:
    """Start a broker, send and read messages, show how to connect.

    Without --stay the broker and its data are gone afterwards. Port 9092 is used when it is free.

    \b
    Examples:
      tailrace demo
      tailrace demo --stay
    """
    from tailrace.testing.broker import Broker, BrokerFailed

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a clean end, whoever asks for it
    start = time.perf_counter()
    try:
        with Broker(data_dir=data_dir if stay else None, kafka_port=_port()) as broker:
            took = time.perf_counter() - start
            print(f"Tailrace {__version__}: a broker is up at {broker.bootstrap}, {took:.2f} s after we asked for one.")
            if broker.port != usual_port:
                print(f"  (Port {usual_port}, the usual one, is in use by another program.)")
            _show(broker.bootstrap)
            if stay:
                print(f"It stays up, with its data in {data_dir}, until Ctrl-C.", flush=True)
                _stay(broker)
    except BrokerFailed as error:
        raise Failed(str(error)) from None
    print("The broker has stopped" + ("." if stay else " and its data is gone; `tailrace demo --stay` keeps both."))


def _stay(broker: "Broker") -> None:
    try:
        code = broker.wait()
    except KeyboardInterrupt:
        return
    raise Failed(f"the broker ended by itself, with exit code {code}.")


def _port() -> int:
    """The usual port if it is free, else any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", usual_port))
        except OSError:
            return 0
    return usual_port


def _show(bootstrap: str) -> None:
    client = admin(bootstrap)
    from confluent_kafka.admin import NewTopic

    with asking(bootstrap, "create topic"):
        made = client.create_topics([NewTopic(topic, 1, -1)], request_timeout=answer_timeout_s)
    error = made[topic].exception(2 * answer_timeout_s)
    if error is None:
        print(f"  Created topic {topic!r}.")
    elif error.args[0].name() != "TOPIC_ALREADY_EXISTS":
        answer(made[topic], bootstrap, f"create topic {topic}")
    first = _send(bootstrap)
    print(f"  Sent {len(orders)} messages, each on disk before it was confirmed. Read back:")
    for message in _read(bootstrap, first):
        key, value = (bytes(part or b"").decode() for part in (message.key(), message.value()))
        print(f"    offset {message.offset()}  {key}: {value}")
    flag = "" if bootstrap == default_bootstrap else f" --bootstrap {bootstrap}"
    print(how_to_connect.format(bootstrap=bootstrap, flag=flag, program=_program()))


def _program() -> str:
    """What to type for this very program: its name where the shell finds it, else the path it was started with."""
    started_as = sys.argv[0]
    if os.path.basename(started_as) == "__main__.py":
        return f"{sys.executable} -m tailrace"
    found = shutil.which("tailrace")
    return "tailrace" if found is not None and os.path.realpath(found) == os.path.realpath(started_as) else started_as


def _send(bootstrap: str) -> int:
    """Send the orders; the offset of the first."""
    client = producer(bootstrap, {"acks": "all", "enable.idempotence": True})
    offsets: list[int] = []
    failed: list[KafkaError] = []

    def arrived(error: "KafkaError | None", message: "Message") -> None:
        if error is not None:
            failed.append(error)
        else:
            offsets.append(message.offset() or 0)

    for key, value in orders:
        client.produce(topic, key=key, value=value, on_delivery=arrived)
    client.flush(show_timeout_s)
    if failed or len(offsets) < len(orders):
        raise Failed(f"the messages did not arrive: {sentence(failed[0]) if failed else 'no answer'}.")
    return min(offsets)


def _read(bootstrap: str, first: int) -> "list[Message]":
    client = consumer(bootstrap, {})
    from confluent_kafka import TopicPartition

    try:
        client.assign([TopicPartition(topic, 0, first)])
        reading = Reading(client, [0], most=len(orders), timeout_s=show_timeout_s, to_end=False)
        messages = [message for some in reading.lists() for message in some]
    finally:
        client.close()
    if not reading.complete:
        raise Failed(f"{reading.count} of {len(orders)} messages came back.")
    return messages
