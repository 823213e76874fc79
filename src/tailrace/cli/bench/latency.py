"""Latency of single messages at a steady rate: until acknowledged, and until consumed.

The load is open-loop: messages are due at fixed times, and latency counts from the due time, so a broker that stalls
cannot hide the stall by slowing the sender down (coordinated omission). One thread polls for acknowledgements and one
for messages, so that neither is noticed late while the sender sleeps.
"""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tailrace.cli.bench.load import IDLE_TIMEOUT_S, Case, Load, Progress, filler, purged_on_interrupt
from tailrace.cli.client.kafka_client import ANSWER_TIMEOUT_S, asking, consumer, producer
from tailrace.cli.failure import Failed
from tailrace.cli.messages.reading import places

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, Producer

DUE_TIME_BYTES: Final = 8  # the start of each value: when it was due, in nanoseconds
POLL_S: Final = 0.2


def measure_latency(load: Load, progress: Progress) -> Case:
    total = max(1, int(load.rate * load.seconds))
    confirmed_ms: list[float] = []
    arrived_ms: list[float] = []
    sender = producer(load.access, {"acks": load.acks, "compression.type": load.compression, "linger.ms": 0})
    reader = _reader_at_end(load)
    try:
        with asking(load.access, f"send to {load.topic}"):
            _warm_up(load, sender, reader)
        over = threading.Event()
        threads = (
            threading.Thread(target=_wait_confirmed, args=(sender, over), daemon=True),
            threading.Thread(target=_wait_arrived, args=(reader, over, total, arrived_ms), daemon=True),
        )
        for thread in threads:
            thread.start()
        try:
            with asking(load.access, f"send to {load.topic}"), purged_on_interrupt(sender):
                _send(load, sender, total, confirmed_ms, progress)
                sender.flush(IDLE_TIMEOUT_S)
            threads[1].join(IDLE_TIMEOUT_S)
        finally:  # closing a client while a thread waits in it would hang
            over.set()
            for thread in threads:
                thread.join()
    finally:
        reader.close()
    if len(confirmed_ms) < total or len(arrived_ms) < total:
        raise Failed(
            f"of {total} messages, {len(confirmed_ms)} were acknowledged and {len(arrived_ms)} consumed "
            f"within {IDLE_TIMEOUT_S:g} s; the broker's log may say why."
        )
    return {
        "name": "latency",
        "acks": load.acks,
        "messages": total,
        "size": load.size,
        "rate": load.rate,
        "confirmed_ms": percentiles(confirmed_ms),
        "end_to_end_ms": percentiles(arrived_ms),
    }


def _warm_up(load: Load, sender: "Producer", reader: "Consumer") -> None:
    """Send one message through each partition, so that connecting is not part of the measurement."""
    awaited = [place.partition for place in reader.assignment()]
    for partition in awaited:
        sender.produce(load.topic, b"", partition=partition)
    sender.flush(IDLE_TIMEOUT_S)
    deadline = time.monotonic() + IDLE_TIMEOUT_S
    while awaited and time.monotonic() < deadline:
        message = reader.poll(POLL_S)
        if message is not None and message.error() is None:
            awaited = [one for one in awaited if one != message.partition()]
    if awaited:
        raise Failed(
            f"a message sent to {load.topic} could not be consumed within {IDLE_TIMEOUT_S:g} s; "
            "the broker's log may say why."
        )


def _send(load: Load, sender: "Producer", total: int, confirmed_ms: list[float], progress: Progress) -> None:
    rest = filler(max(0, load.size - DUE_TIME_BYTES))
    start = time.perf_counter_ns()
    for number in range(total):
        due = start + number * 1_000_000_000 // load.rate
        early = due - time.perf_counter_ns()
        if early > 0:
            time.sleep(early / 1e9)
        sender.produce(load.topic, due.to_bytes(DUE_TIME_BYTES, "big") + rest, on_delivery=_timer(due, confirmed_ms))
        progress(number + 1)


def _timer(due: int, times_ms: list[float]) -> "Callable[[KafkaError | None, Message], None]":
    def confirmed(error: "KafkaError | None", message: "Message") -> None:
        if error is None:
            times_ms.append((time.perf_counter_ns() - due) / 1e6)

    return confirmed


def _wait_confirmed(sender: "Producer", over: threading.Event) -> None:
    while not over.is_set():
        sender.poll(POLL_S)


def _wait_arrived(reader: "Consumer", over: threading.Event, total: int, times_ms: list[float]) -> None:
    while len(times_ms) < total and not over.is_set():
        message = reader.poll(POLL_S)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            times_ms.append((time.perf_counter_ns() - int.from_bytes(value[:DUE_TIME_BYTES], "big")) / 1e6)


def _reader_at_end(load: Load) -> "Consumer":
    """A consumer of all messages sent from now on: it starts at the current end offsets, not at OFFSET_END, which
    librdkafka resolves later."""
    reader = consumer(load.access, {})
    wanted = places(reader, load.topic, load.access, partition=None, from_beginning=False, offset=None)
    with asking(load.access, f"find the end of {load.topic}"):
        for place in wanted:
            _, place.offset = reader.get_watermark_offsets(place, timeout=ANSWER_TIMEOUT_S)
    reader.assign(wanted)
    return reader


def percentiles(values: list[float]) -> dict[str, float]:
    ordered = sorted(values)
    at = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    found = {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in at.items()}
    return {name: round(value, 3) for name, value in (found | {"max": ordered[-1]}).items()}
