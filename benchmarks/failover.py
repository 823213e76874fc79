"""How long producers wait when a leader dies: one producer that writes to many partitions, and notes who answers when.

Each partition gets a record now and then, so that all are busy; when a broker is killed, each partition it led gets one
more at once, and has *resumed* when a record is acknowledged that was written after the kill. The producer is
librdkafka's, idempotent, acks=all, with its defaults: what it waits for by itself is part of what people see. It sends
each partition's records in requests of their own, five at a time to a broker; so no more partitions are kept busy than
can be answered soon, however many there are.

Every kill finds leadership where it belongs and the producer connected to all brokers: to one that has just come back
librdkafka would wait seconds before it connects again, whoever it is.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from confluent_kafka import Producer

from tailrace.testing import Cluster

POLL_S: Final = 0.002
RESUMED_WITHIN_S: Final = 60.0
HEALTHY_WITHIN_S: Final = 120.0
LOOK_S: Final = 0.1
VALUE: Final = bytes(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """One kill: how many partitions lost their leader, and when they went on."""

    partitions: int
    median_s: float
    last_s: float  # until the last of them had resumed


class Load:
    """Writes to partitions in turn, in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int], *, per_second: float) -> None:
        self.failures: list[str] = []
        self._topic = topic
        self.partitions = partitions
        self._per_second = per_second
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self._urgent: list[int] = []  # partitions that lost their leader
        self._waiting: dict[int, None] = {}  # of those, who has not resumed
        self._killed_at = 0.0
        self._resumed: list[float] = []
        self._all_resumed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="failover-load", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        began, written = time.monotonic(), 0
        while not self._stopping.is_set():
            while self._urgent:
                self._write(self._urgent.pop())
            if written < (time.monotonic() - began) * self._per_second:
                self._write(self.partitions[written % len(self.partitions)])
                written += 1
                self._producer.poll(0)
            else:
                self._producer.poll(POLL_S)

    def _write(self, partition: int) -> None:
        told = partial(self._delivered, partition, time.monotonic())
        try:
            self._producer.produce(self._topic, VALUE, partition=partition, on_delivery=told)
        except BufferError:
            self._producer.poll(POLL_S)

    def _delivered(self, partition: int, written_at: float, error: Any, _: Any) -> None:
        now = time.monotonic()
        if error is not None:
            self.failures.append(str(error))
        elif written_at > self._killed_at and partition in self._waiting:
            del self._waiting[partition]
            self._resumed.append(now - self._killed_at)
            if not self._waiting:
                self._all_resumed.set()

    def wait_until_busy(self) -> None:
        """Until every partition has answered something that was written from now on."""
        self._expect(self.partitions, time.monotonic())

    def lost(self, partitions: Sequence[int], killed_at: float) -> Failover:
        """The leader of these partitions was killed at that time; waits until all of them have resumed."""
        self._expect(partitions, killed_at)
        return Failover(partitions=len(partitions), median_s=median(self._resumed), last_s=max(self._resumed))

    def _expect(self, partitions: Sequence[int], since: float) -> None:
        self._resumed = []
        self._all_resumed.clear()
        self._killed_at = since
        self._waiting = dict.fromkeys(partitions)
        self._urgent += partitions
        if not self._all_resumed.wait(RESUMED_WITHIN_S):
            raise TimeoutError(f"{len(self._waiting)} partitions were not answered within {RESUMED_WITHIN_S:g} s")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(RESUMED_WITHIN_S)


def kill_leader(cluster: Cluster, victim: int, topic: str, load: Load) -> Failover:
    """Kill a broker that leads its share of a topic, see everybody resume, and bring it back."""
    led = _wait_until_led_as_assigned(cluster, topic)
    load.wait_until_busy()
    killed_at = time.monotonic()
    cluster.kill(victim)
    found = load.lost([one for one in load.partitions if one in led[victim]], killed_at)
    cluster.restart(victim)
    return found


def _wait_until_led_as_assigned(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    """Which broker leads which partitions, once that is the first replica of each and all replicas are in sync."""
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    cluster.wait_until_healthy(HEALTHY_WITHIN_S)
    while True:
        led: dict[int, list[int]] = {broker: [] for broker in cluster.ids}
        astray = 0
        for one in cluster.look(cluster.ids[0]).partitions:
            if one.topic == topic:
                led[one.replicas[0]].append(one.partition)
                astray += one.leader != one.replicas[0]
        if not astray:
            return led
        if time.monotonic() > deadline:
            raise TimeoutError(f"{astray} partitions were not led as assigned within {HEALTHY_WITHIN_S:g} s")
        time.sleep(LOOK_S)
