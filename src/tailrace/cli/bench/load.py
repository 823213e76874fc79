"""What `tailrace bench` does to a broker: fill a topic and empty it. (`latency.py` times single messages.)

All of it goes through librdkafka from one process, so on one machine the client takes part of what it measures:
compare figures of one machine and one run.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tailrace.cli.client.kafka_client import asking, consumer, producer, sentence
from tailrace.cli.failure import Failed
from tailrace.cli.messages.reading import Reading, places
from tailrace.model.frozen import frozen

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

Case = dict[str, object]
Progress = Callable[[int], None]  # told how many messages are done

PROGRESS_EVERY: Final = 2000
QUIET_TIMEOUT_S: Final = 20.0  # how long a broker may say nothing
BATCH_BYTES: Final = 1_000_000


@frozen
class Load:
    bootstrap: str
    topic: str
    messages: int
    size: int  # bytes of one value
    acks: str
    compression: str
    rate: int  # messages a second, when timing single ones
    seconds: float  # how long single ones are timed


def measure_produce(load: Load, progress: Progress) -> Case:
    """How fast messages go in, until the broker has confirmed all of them."""
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
    client = producer(load.bootstrap, settings)
    value = filler(load.size)
    start = time.perf_counter()
    with asking(load.bootstrap, f"send to {load.topic}"), purged_when_cut_short(client):
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
        left = client.flush(QUIET_TIMEOUT_S)
    seconds = time.perf_counter() - start
    if failed or left:
        reason = sentence(failed[0]) if failed else f"{left} messages were not confirmed within {QUIET_TIMEOUT_S:g} s"
        raise Failed(f"cannot send to {load.topic}: {reason}.")
    return {"name": "produce", "acks": load.acks, "compression": load.compression} | _throughput(load, seconds)


@contextmanager
def purged_when_cut_short(client: "Producer") -> Iterator[None]:
    """What waits in a producer when Ctrl-C comes must not go out later: it would make the deleted topic anew."""
    try:
        yield
    except BaseException:
        client.purge(in_flight=False)
        client.flush(QUIET_TIMEOUT_S)
        raise


def measure_consume(load: Load, progress: Progress) -> Case:
    """How fast messages come out, from the beginning of the topic."""
    client = consumer(load.bootstrap, {})
    try:
        wanted = places(client, load.topic, load.bootstrap, partition=None, from_beginning=True, offset=None)
        client.assign(wanted)
        reading = Reading(client, [], most=load.messages, timeout_s=QUIET_TIMEOUT_S, to_end=False)
        start = time.perf_counter()
        for _ in reading.lists():
            progress(reading.count)
        seconds = time.perf_counter() - start
    finally:
        client.close()
    if not reading.complete:
        raise Failed(f"{reading.count} of {load.messages} messages came out of {load.topic}.")
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
    """Bytes that compress to about half, as text does."""
    return os.urandom((size + 1) // 2).hex().encode()[:size]
