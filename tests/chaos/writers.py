"""Idempotent producers of librdkafka that write through every storm, and remember what they were promised.

Each writes numbered records to every partition, acks=all, at a rate that leaves the machine room for the brokers, and
never gives a record up: what a minority's loss makes of a record is a delay. librdkafka reports records of a partition
in the order in which they were given to it, so what was promised is a plain array of offsets, by record number. Where
an answer was lost and a later record's was not, librdkafka infers that both are there, and cannot tell at which offset.
"""

import logging
import random
import threading
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.chaos.record_key import RecordKey

TURN_S: Final = 0.01
CATCH_UP_MAX: Final = 50  # records in one turn, after a pause
VALUE_MAX_BYTES: Final = 400
MESSAGE_TIMEOUT_MS: Final = 240_000
COMPLAINTS_MAX: Final = 10
SOMEWHERE: Final = -1  # acknowledged, at an offset that nobody told


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """How one writer batches: batches of all shapes are to be cut, replicated and found again."""

    linger_ms: int
    compression: str


HABITS: Final = (
    Habit(linger_ms=0, compression="none"),
    Habit(linger_ms=5, compression="lz4"),
    Habit(linger_ms=50, compression="zstd"),
)


class Writer:
    def __init__(
        self, number: int, bootstrap: str, topic: str, partitions: int, *, per_second: float, folder: Path
    ) -> None:
        self.number = number
        self.promised = [array("q") for _ in range(partitions)]  # offset by record number
        self.sent = [0] * partitions
        self.complaints: list[str] = []
        self.longest_wait_s = 0.0  # of one record, until it was acknowledged
        self._topic = topic
        self._per_second = per_second
        self._random = random.Random(number)  # of sizes alone
        self._stopping = threading.Event()
        self._producer = Producer(
            _settings(bootstrap, HABITS[number % len(HABITS)]), logger=_logger(folder / f"writer-{number}.log")
        )
        self._thread = threading.Thread(target=self._run, name=f"writer-{number}", daemon=True)
        self._thread.start()

    @property
    def acknowledged(self) -> int:
        return sum(map(len, self.promised))

    def _run(self) -> None:
        try:
            self._write_on()
        except KafkaException as error:  # it found out that it was lied to, and gives up
            self._complain(f"writer {self.number} cannot go on: {error}")

    def _write_on(self) -> None:
        began, written = time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - began) * self._per_second) - written
            written += due
            for _ in range(min(due, CATCH_UP_MAX)):
                self._write()
            self._producer.poll(TURN_S)

    def _write(self) -> None:
        partition = sum(self.sent) % len(self.sent)
        key = RecordKey(self.number, partition, self.sent[partition])
        value = bytes(self._random.randrange(VALUE_MAX_BYTES))
        try:
            self._producer.produce(self._topic, value, key.to_bytes(), partition, self._delivered)
        except BufferError:  # its queue is full: who waits longest is heard of in `longest_wait_s`
            return
        self.sent[partition] += 1

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        key, offset = RecordKey.of(message.key() or b""), message.offset()
        promised = self.promised[key.partition]
        if error is not None:
            self._complain(f"{key} was not delivered: {error}")
        elif key.number != len(promised):
            self._complain(f"{key} was acknowledged when record {len(promised)} was next")
        else:
            promised.append(SOMEWHERE if offset is None else offset)
            self.longest_wait_s = max(self.longest_wait_s, message.latency() or 0.0)

    def _complain(self, complaint: str) -> None:
        if len(self.complaints) < COMPLAINTS_MAX:
            self.complaints.append(complaint)

    def stop(self, within_s: float) -> None:
        """Write no more, and wait until all that was written is acknowledged."""
        self._stopping.set()
        self._thread.join()
        if left := self._producer.flush(within_s):
            self._complain(f"{left} records of writer {self.number} were not acknowledged within {within_s:g} s")


def _settings(bootstrap: str, habit: Habit) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "acks": "all",
        "linger.ms": habit.linger_ms,
        "compression.type": habit.compression,
        "message.timeout.ms": MESSAGE_TIMEOUT_MS,
        "debug": "eos",  # how it came that a record was sent twice
    }


def _logger(path: Path) -> logging.Logger:
    """For what librdkafka has to say: of interest only when a promise was broken."""
    logger = logging.Logger(path.stem, logging.DEBUG)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    return logger
