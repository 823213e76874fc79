"""librdkafka as load, called through ctypes.

The Python client creates an object per message, a cost that should not be measured. So the library that ships with
confluent-kafka is called through ctypes: messages are produced by the thousand (`rd_kafka_produce_batch`), and consumed
by `rd_kafka_consume_callback` with a C function that ignores them; its return value is their number (and may once count
a message of librdkafka itself). End offsets show whether all messages arrived. Latency is measured with the Python
client, which reports for each message the time that the library measured.
"""

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import confluent_kafka

from benchmarks.connection import Refused
from benchmarks.latency import Spread
from benchmarks.load import Measured
from benchmarks.processes import Server, cpu_seconds, measure
from benchmarks.rdkafka_settings import BULK_SETTINGS, CONSUME_SETTINGS, SINGLE_SETTINGS

Kind = Literal["produce", "single", "consume", "latency"]
MESSAGES_PER_CALL: Final = 1000
FLUSH_TIMEOUT_MS: Final = 60_000
CONSUME_TIMEOUT_SECONDS: Final = 60.0
PRODUCER_TYPE: Final = 0
CONSUMER_TYPE: Final = 1
FROM_BEGINNING: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    kind: Kind
    host: str
    port: int
    pids: tuple[int, ...]  # the brokers whose CPU is measured
    topic: str  # a consumer needs one that has `messages`
    messages: int
    value_bytes: int
    partitions: int = 1  # producers fill them evenly; a consumer reads only the first
    rack: str = ""  # of a consumer
    truststore: str = ""  # a PEM file: connect with TLS
    acks: int = 1
    rate: int = 0  # messages per second, for `latency`


class Message(ctypes.Structure):
    """rd_kafka_message_t"""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_length", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


def load_library() -> Any:
    """The librdkafka that is installed with confluent-kafka."""
    beside = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(beside.glob("librdkafka*.so*"))))
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_topic_new"):
        getattr(library, name).restype = ctypes.c_void_p
    return library


class Client:
    """A librdkafka handle and one topic."""

    def __init__(self, work: Work, kind: int, settings: dict[str, str]) -> None:
        self.library: Final = load_library()
        error = ctypes.create_string_buffer(512)
        conf = ctypes.c_void_p(self.library.rd_kafka_conf_new())
        secured = {"security.protocol": "SSL", "ssl.ca.location": work.truststore} if work.truststore else {}
        for name, value in {"bootstrap.servers": f"{work.host}:{work.port}", **secured, **settings}.items():
            if self.library.rd_kafka_conf_set(conf, name.encode(), value.encode(), error, len(error)):
                raise Refused(error.value.decode())
        self.handle: Final = ctypes.c_void_p(self.library.rd_kafka_new(kind, conf, error, len(error)))
        if not self.handle:
            raise Refused(error.value.decode())
        self.name: Final = work.topic.encode()
        self.topic: Final = ctypes.c_void_p(self.library.rd_kafka_topic_new(self.handle, self.name, None))
        self._learn_leader()

    def _learn_leader(self) -> None:
        """Request metadata before the clock starts, so that a run does not begin with waiting for it."""
        metadata = ctypes.c_void_p()
        if error := self.library.rd_kafka_metadata(self.handle, 0, self.topic, ctypes.byref(metadata), 10_000):
            raise Refused(f"librdkafka got no metadata: error {error}")
        self.library.rd_kafka_metadata_destroy(metadata)

    def end(self, partition: int) -> int:
        """The end offset of the partition, from its leader."""
        low, high = ctypes.c_int64(), ctypes.c_int64()
        if error := self.library.rd_kafka_query_watermark_offsets(
            self.handle, self.name, partition, ctypes.byref(low), ctypes.byref(high), 10_000
        ):
            raise Refused(f"librdkafka got no end offset: error {error}")
        return high.value


def prepare_produce(client: Client, work: Work) -> Callable[[], None]:
    value = ctypes.create_string_buffer(os.urandom(work.value_bytes), work.value_bytes)
    messages = (Message * MESSAGES_PER_CALL)()
    for message in messages:
        message.payload = ctypes.addressof(value)
        message.length = work.value_bytes

    def run() -> None:
        left, partition, take = work.messages, 0, client.library.rd_kafka_produce_batch
        while left:
            # A full queue accepts only some messages; all are the same, so only their number matters.
            taken = take(client.topic, partition, 0, messages, min(left, MESSAGES_PER_CALL))
            left -= taken
            partition = (partition + 1) % work.partitions
            if not taken:
                time.sleep(0.0005)
        if client.library.rd_kafka_flush(client.handle, FLUSH_TIMEOUT_MS):
            raise Refused("librdkafka could not flush")

    return run


def prepare_consume(client: Client, work: Work) -> Callable[[], None]:
    ignore = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)  # any C function without side effects

    def run() -> None:
        left = work.messages
        deadline = time.monotonic() + CONSUME_TIMEOUT_SECONDS
        if client.library.rd_kafka_consume_start(client.topic, 0, ctypes.c_int64(FROM_BEGINNING)):
            raise Refused("librdkafka could not start to consume")
        while left > 0:
            left -= client.library.rd_kafka_consume_callback(client.topic, 0, 100, ignore, None)
            if time.monotonic() > deadline:
                raise Refused(f"{left} of {work.messages} messages did not arrive")

    return run


def perform(work: Work) -> Measured:
    """Prepare, then measure; bytes count values only."""
    if work.kind == "consume":
        client = Client(work, CONSUMER_TYPE, {**CONSUME_SETTINGS, "client.rack": work.rack})
        run = prepare_consume(client, work)
    else:
        settings = BULK_SETTINGS if work.kind == "produce" else SINGLE_SETTINGS
        client = Client(work, PRODUCER_TYPE, {**settings, "acks": str(work.acks)})
        run = prepare_produce(client, work)
    partitions = range(work.partitions)
    expected = sum(map(client.end, partitions)) + work.messages * (work.kind != "consume")
    computed, began = sum(map(cpu_seconds, work.pids)), time.perf_counter()
    run()
    seconds, computed = time.perf_counter() - began, sum(map(cpu_seconds, work.pids)) - computed
    deadline = time.monotonic() + CONSUME_TIMEOUT_SECONDS
    while (end := sum(map(client.end, partitions))) != expected:  # acks=1 does not wait for the disk
        if time.monotonic() > deadline:
            raise Refused(f"{work.topic} ends at {end}, not at {expected}")
        time.sleep(0.01)
    moved = work.messages * work.value_bytes
    return Measured(requests=work.messages, bytes=moved, seconds=seconds, cpu_seconds=computed)


def perform_latency(work: Work) -> Spread:
    """Produce at a steady rate, and measure how long each message took from its queue to its acknowledgement."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": f"{work.host}:{work.port}", "acks": str(work.acks), "linger.ms": 0}
    )
    taken: list[float] = []

    def delivered(error: Any, message: Any) -> None:
        if error:
            raise Refused(str(error))
        taken.append(message.latency())

    producer.list_topics(work.topic)
    gc.disable()
    value = bytes(work.value_bytes)
    began = time.perf_counter()
    for index in range(work.messages):
        while (pause := began + index / work.rate - time.perf_counter()) > 0:
            time.sleep(pause)
        producer.produce(work.topic, value, partition=0, on_delivery=delivered)
        producer.poll(0)
    if producer.flush(FLUSH_TIMEOUT_MS / 1000):
        raise Refused("librdkafka could not flush")
    return Spread.of(taken)


def measured(server: Server, kind: Kind, topic: str, messages: int, *, pids: Sequence[int], **options: Any) -> Measured:
    """Produce or consume messages in a process of its own; `pids` are the brokers whose CPU is measured."""
    host, port = server.host, server.port
    work = Work(kind=kind, host=host, port=port, pids=tuple(pids), topic=topic, messages=messages, **options)
    return Measured(**measure("benchmarks.rdkafka", work))


if __name__ == "__main__":
    wanted = Work(**json.loads(sys.argv[1]))
    print(json.dumps(asdict(perform_latency(wanted) if wanted.kind == "latency" else perform(wanted))))
