"""Time until producers resume after a leader is killed: one producer that writes to many partitions.

Each partition gets a record now and then, so that all are busy. When a broker is killed, each partition it led gets one
more record at once, and has *resumed* when a record written after the kill is acknowledged. The producer is
librdkafka's, idempotent, acks=all, with its defaults: its own waiting times are part of what users see. It sends the
records of each partition in separate requests, five at a time per broker; so only as many partitions are kept busy as
can be answered soon, however many there are.

Before every kill, partitions are led by their preferred replicas and the producer is connected to all brokers:
librdkafka waits seconds before it reconnects to a broker that has just restarted.
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
    """One kill: the partitions that lost their leader, and when they resumed."""

    partitions: int
    median_s: float
    last_s: float  # until the last partition had resumed


class Load:
    """Writes to partitions in turn, in its own thread."""

    def __init__(self, bootstrap: str, topic: str, partitions: Sequence[int], *, per_second: float) -> None:
        self.failures: list[str] = []
        self._topic = topic
        self.partitions = partitions
        self._per_second = per_second
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self._urgent: list[int] = []  # partitions to write to at once: they lost their leader
        self._waiting: dict[int, None] = {}  # partitions that have not resumed yet
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
        on_delivery = partial(self._delivered, partition, time.monotonic())
        try:
            self._producer.produce(self._topic, VALUE, partition=partition, on_delivery=on_delivery)
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
        """Wait until every partition has acknowledged a record written from now on."""
        self._expect(self.partitions, time.monotonic())

    def lost(self, partitions: Sequence[int], killed_at: float) -> Failover:
        """The leader of these partitions was killed at that time; wait until all of them have resumed."""
        self._expect(partitions, killed_at)
        return Failover(partitions=len(partitions), median_s=median(self._resumed), last_s=max(self._resumed))

    def _expect(self, partitions: Sequence[int], since: float) -> None:
        self._resumed = []
        self._all_resumed.clear()
        self._killed_at = since
        self._waiting = dict.fromkeys(partitions)
        self._urgent += partitions
        if not self._all_resumed.wait(RESUMED_WITHIN_S):
            raise TimeoutError(f"{len(self._waiting)} partitions acknowledged nothing within {RESUMED_WITHIN_S:g} s")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(RESUMED_WITHIN_S)


def kill_leader(cluster: Cluster, victim: int, topic: str, load: Load) -> Failover:
    """Kill a broker, wait until all partitions it led have resumed, and restart it."""
    led = _wait_until_led_as_assigned(cluster, topic)
    load.wait_until_busy()
    killed_at = time.monotonic()
    cluster.kill(victim)
    found = load.lost([one for one in load.partitions if one in led[victim]], killed_at)
    cluster.restart(victim)
    return found


def _wait_until_led_as_assigned(cluster: Cluster, topic: str) -> dict[int, list[int]]:
    """Wait until every partition is led by its preferred replica with a full ISR; return the partitions by leader."""
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    cluster.wait_until_healthy(HEALTHY_WITHIN_S)
    while True:
        led: dict[int, list[int]] = {broker: [] for broker in cluster.ids}
        not_preferred = 0
        for one in cluster.look(cluster.ids[0]).partitions:
            if one.topic == topic:
                led[one.replicas[0]].append(one.partition)
                not_preferred += one.leader != one.replicas[0]
        if not not_preferred:
            return led
        if time.monotonic() > deadline:
            raise TimeoutError(f"{not_preferred} partitions not led by the preferred replica in {HEALTHY_WITHIN_S:g} s")
        time.sleep(LOOK_S)
