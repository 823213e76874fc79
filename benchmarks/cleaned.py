"""Data for the cleaner of a compacted topic: the same bytes for every server, held back until all is written.

Every key is written a few times, each time in another random order, in batches of about 16 KB, as a Java producer makes
them by default. The Produce requests are encoded once into a file, and each server gets that file.

`min.compaction.lag.ms` holds the data back: the records are younger, so no cleaner touches them. Then it is set to 0,
and the clock runs until the server has recorded that all closed segments are clean: Kafka in the file
`cleaner-offset-checkpoint`, ours in the file `cleaner`. Both write it durably at the end of a pass. The active segment
is cleaned by neither. Both look for work every 100 ms. Ours cleans only what is below a recovery point: the clock
starts once there is one, which would otherwise be up to a minute later.
"""

import os
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import frames
from benchmarks.answers import Answers
from benchmarks.brokers import Brokers
from benchmarks.connection import Connection, Refused
from benchmarks.processes import Server, children, cpu_seconds
from tailrace.client.blocking_driver import BlockingConnection
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.model.addresses import Address
from tailrace.model.ids import Id
from tailrace.model.limits import MiB
from tailrace.ports.offload import SystemOffload
from tailrace.ports.system_disk import SystemDisk
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic, NewTopicConfig
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)

KEYS: Final = 1_000_000
TIMES_WRITTEN: Final = 3
BATCH_BYTES: Final = 16_384
RECORD_EXTRA_BYTES: Final = 25  # key, lengths, timestamp and offset
SEGMENT_BYTES: Final = 32 * MiB
IN_FLIGHT: Final = 50
BACKOFF_MS: Final = 100
HELD_BACK_MS: Final = 86_400_000
TOPIC_RESOURCE: Final = 2
SET: Final = 0
ANSWER_TIMEOUT_SECONDS: Final = 60.0
CLEAN_TIMEOUT_SECONDS: Final = 300.0
POLL_SECONDS: Final = 0.02
LOG_SUFFIX: Final = ".log"
BACKOFF_SETTING: Final = "log.cleaner.backoff.ms"
SETTINGS: Final[dict[str, Any]] = {
    "log_cleaner_backoff_ms": BACKOFF_MS,
    "log_flush_offset_checkpoint_interval_ms": 1_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    seconds: float
    cpu_seconds: float  # of the server and its worker processes
    bytes_before: int  # of the closed segments
    bytes_after: int

    @property
    def megabytes_per_second(self) -> float:
        return self.bytes_before / self.seconds / 1e6

    @property
    def megabytes_per_cpu_second(self) -> float:
        return self.bytes_before / self.cpu_seconds / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Encoded Produce requests in a file, with rising correlation ids."""

    file: Path
    count: int


def encode(file: Path, topic: str, value_bytes: int, keys: int = KEYS) -> Requests:
    """Every key `TIMES_WRITTEN` times, in random orders; the values do not compress."""
    count, chance = 0, random.Random(value_bytes)
    pool, order = os.urandom(MiB), [b"key-%09d" % number for number in range(keys)]
    per_batch = max(1, BATCH_BYTES // (value_bytes + RECORD_EXTRA_BYTES))
    with file.open("wb") as out:
        for _ in range(TIMES_WRITTEN):
            chance.shuffle(order)
            for first in range(0, keys, per_batch):
                now_ms, begin = time.time_ns() // 1_000_000, chance.randrange(MiB // 2)
                records = [
                    NewRecord(key=key, value=pool[begin + at : begin + at + value_bytes], timestamp=now_ms)
                    for at, key in enumerate(order[first : first + per_batch])
                ]
                out.write(frames.produce(topic, build_batch(records), acks=1, correlation=count))
                count += 1
    return Requests(file=file, count=count)


def create_held_back(server: Server, topic: str) -> Id:
    """A compacted topic of one partition that the cleaner leaves alone for now; its id."""
    settings = {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(HELD_BACK_MS),
        "min.cleanable.dirty.ratio": "0.01",
        "segment.bytes": str(SEGMENT_BYTES),
        "file.delete.delay.ms": "0",
    }
    configs = tuple(NewTopicConfig(name=name, value=value) for name, value in settings.items())
    wanted = NewTopic(name=topic, num_partitions=1, replication_factor=1, configs=configs)
    with connected(server) as connection:
        answer = connection.ask(CreateTopicsRequest(topics=(wanted,))).topics[0]
    if answer.error_code:
        raise Refused(f"creating topic {topic}: error {answer.error_code}, {answer.error_message}")
    Brokers(servers=(server,)).wait_until_led(topic, 1)
    return Id(answer.topic_id)


def let_go(server: Server, topic: str) -> None:
    change = ConfigChange(name="min.compaction.lag.ms", config_operation=SET, value="0")
    altered = ResourceToAlter(resource_type=TOPIC_RESOURCE, resource_name=topic, configs=(change,))
    with connected(server) as connection:
        answer = connection.ask(IncrementalAlterConfigsRequest(resources=(altered,))).resources[0]
    if answer.error_code:
        raise Refused(f"altering topic {topic}: error {answer.error_code}, {answer.error_message}")


def connected(server: Server) -> BlockingConnection:
    return BlockingConnection(Address(server.host, server.port), ANSWER_TIMEOUT_SECONDS)


def send(server: Server, topic: str, requests: Requests) -> None:
    """Send the requests, a few in flight."""
    with Connection(server.host, server.port) as connection, requests.file.open("rb") as file:
        answers = Answers(connection.socket, frames.produce_error_at(topic))
        for sent in range(requests.count):
            while sent - answers.taken >= IN_FLIGHT:
                answers.take()
            size = file.read(frames.SIZE_BYTES)
            connection.socket.sendall(size + file.read(int.from_bytes(size)))
        while answers.taken < requests.count:
            answers.take()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A partition that is full and not cleaned yet."""

    server: Server
    topic: str
    folder: Path

    def is_clean(self, end: int) -> bool:
        """Whether the server has recorded that everything below `end` is clean."""
        raise NotImplementedError

    def is_held_by_time_only(self, end: int) -> bool:
        """Whether `min.compaction.lag.ms` is all that keeps the cleaner from what lies below `end`."""
        return True

    @property
    def closed_segments(self) -> dict[int, int]:
        """The sizes of all segments but the active one, by base offset."""
        sizes = {}
        for file in self.folder.glob(f"*{LOG_SUFFIX}"):
            with suppress(FileNotFoundError):  # replaced meanwhile
                sizes[int(file.stem)] = file.stat().st_size
        del sizes[max(sizes)]
        return sizes

    def clean(self) -> Cleaned:
        """Let the cleaner go, and wait until it has recorded its work."""
        active = max(int(file.stem) for file in self.folder.glob(f"*{LOG_SUFFIX}"))
        if not active:
            raise Refused(f"{self.topic} has only one segment, which no cleaner touches")
        while not self.is_held_by_time_only(active):
            time.sleep(POLL_SECONDS)
        before, computed = sum(self.closed_segments.values()), cpu_seconds(self.server.pid)
        began = time.perf_counter()
        let_go(self.server, self.topic)
        while not self.is_clean(active):
            prefer(children(self.server.pid))
            if time.perf_counter() - began > CLEAN_TIMEOUT_SECONDS:
                raise Refused(f"{self.server.name} has not cleaned {self.topic} in {CLEAN_TIMEOUT_SECONDS:g} s")
            time.sleep(POLL_SECONDS)
        return Cleaned(
            seconds=time.perf_counter() - began,
            cpu_seconds=cpu_seconds(self.server.pid) - computed,
            bytes_before=before,
            bytes_after=sum(self.closed_segments.values()),
        )


class HeldByKafka(Held):
    def is_clean(self, end: int) -> bool:
        """The file has a version, a number of lines, and in each line topic, partition and offset."""
        with suppress(FileNotFoundError):
            for line in (self.folder.parent / "cleaner-offset-checkpoint").read_text().splitlines():
                if line.startswith(f"{self.topic} 0 "):
                    return int(line.split()[2]) >= end
        return False


class HeldByOurs(Held):
    def is_held_by_time_only(self, end: int) -> bool:
        """Our cleaner leaves alone what is not below a recorded recovery point, and so certainly on disk."""
        points = load_checkpoints(SystemDisk(SystemOffload()), str(self.folder.parent)) or {}
        return any(self.folder.name == str(key) and one.recovery.offset >= end for key, one in points.items())

    def is_clean(self, end: int) -> bool:
        with suppress(FileNotFoundError):
            for line in (self.folder / "cleaner").read_text().splitlines():
                if line.startswith("clean "):
                    return int(line.split()[1]) >= end
        return False


@contextmanager
def pinned(pid: int) -> Iterator[None]:
    """Let a server run on one core only: all its threads, and the processes that they start meanwhile."""
    cores = os.sched_getaffinity(pid)
    pin(pid, {max(cores)})
    try:
        yield
    finally:
        pin(pid, cores)


def prefer(pids: Iterable[int]) -> None:
    """Give processes the priority of any other, where this is allowed: our cleaner's has the lowest."""
    for pid in pids:
        with suppress(PermissionError, ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, pid, 0)


def pin(pid: int, cores: set[int]) -> None:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(task.name), cores)
