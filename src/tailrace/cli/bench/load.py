"""Throughput of producing and consuming a topic; `latency.py` measures single messages.

The load comes from one process with librdkafka. On the broker's machine the client competes with it for the CPU:
compare only figures of one machine and one run.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.client_config import Access
from tailrace.cli.client.kafka_client import asking, consumer, producer, sentence
from tailrace.cli.failure import Failed
from tailrace.cli.messages.reading import Reading, places
from tailrace.model.frozen import frozen

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

Case = dict[str, object]
Progress = Callable[[int], None]  # called with the number of messages done

PROGRESS_EVERY: Final = 2000
IDLE_TIMEOUT_S: Final = 20.0  # without any progress for so long, the measurement fails
BATCH_BYTES: Final = 1_000_000


@frozen
class Load:
    access: Access
    topic: str
    messages: int
    size: int  # bytes per value
    acks: str
    compression: str
    rate: int  # messages per second of the latency measurement
    seconds: float  # duration of the latency measurement


def measure_produce(load: Load, progress: Progress) -> Case:
    """Throughput of sending, until the broker has acknowledged all messages."""
    failed: list[KafkaError] = []
    settings = {
        "acks": load.acks,
        "compression.type": load.compression,
        "linger.ms": 5,
        "batch.size": BATCH_BYTES,
        "queue.buffering.max.messages": 500_000,
        "delivery.report.only.error": True,
        "on_delivery": lambda error, _: failed.append(error),
    }
    client = producer(load.access, settings)
    value = filler(load.size)
    start = time.perf_counter()
    with asking(load.access, f"send to {load.topic}"), purged_on_interrupt(client):
        for number in range(load.messages):
            while True:
                try:
                    client.produce(load.topic, value)
                    break
                except BufferError:
                    client.poll(0.05)
            if number % PROGRESS_EVERY == 0:
                client.poll(0)
                progress(number)
        left = client.flush(IDLE_TIMEOUT_S)
    seconds = time.perf_counter() - start
    if failed or left:
        reason = sentence(failed[0]) if failed else f"{left} messages were not acknowledged in {IDLE_TIMEOUT_S:g} s"
        raise Failed(f"cannot send to {load.topic}: {reason}.")
    return {"name": "produce", "acks": load.acks, "compression": load.compression} | _throughput(load, seconds)


@contextmanager
def purged_on_interrupt(client: "Producer") -> Iterator[None]:
    """Drop the producer's queue on Ctrl-C: messages sent after the topic is deleted would create it again."""
    try:
        yield
    except BaseException:
        client.purge(in_flight=False)
        client.flush(IDLE_TIMEOUT_S)
        raise


def measure_consume(load: Load, progress: Progress) -> Case:
    """Throughput of reading the topic from its beginning."""
    client = consumer(load.access, {})
    try:
        wanted = places(client, load.topic, load.access, partition=None, from_beginning=True, offset=None)
        client.assign(wanted)
        reading = Reading(client, [], most=load.messages, timeout_s=IDLE_TIMEOUT_S, to_end=False)
        start = time.perf_counter()
        for _ in reading.lists():
            progress(reading.count)
        seconds = time.perf_counter() - start
    finally:
        client.close()
    if not reading.complete:
        raise Failed(
            f"only {reading.count} of {load.messages} messages of {load.topic} were consumed: "
            f"none came for {IDLE_TIMEOUT_S:g} s."
        )
    return {"name": "consume"} | _throughput(load, seconds)


def _throughput(load: Load, seconds: float) -> Case:
    return {
        "messages": load.messages,
        "size": load.size,
        "seconds": round(seconds, 6),
        "messages_per_s": round(load.messages / seconds),
        "mb_per_s": round(load.messages * load.size / seconds / 1e6, 1),
    }


def filler(size: int) -> bytes:
    """Bytes that compress to about half their size, as text does."""
    return os.urandom((size + 1) // 2).hex().encode()[:size]
