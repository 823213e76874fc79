"""How long producers wait when a leader dies: one producer that writes to every partition, and notes who answers when.

Each partition gets a record now and then, so that all are busy; when a broker is killed, each partition it led gets one
more at once, and has *resumed* when a record is acknowledged that was written after the kill. The producer is
librdkafka's, idempotent, acks=all, with its defaults: what it waits for by itself is part of what people see.
"""

import threading
import time
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Final

from confluent_kafka import Producer

from tailrace.testing import Cluster

poll_s: Final = 0.002
resumed_within_s: Final = 60.0
healthy_within_s: Final = 120.0
value: Final = bytes(100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failover:
    """One kill: how many partitions lost their leader, and when they went on."""

    partitions: int
    median_s: float
    last_s: float  # until the last of them had resumed


class Load:
    """Writes to all partitions in turn, in a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, per_second: float) -> None:
        self.failures: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._per_second = per_second
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        self._urgent: list[int] = []  # partitions that lost their leader
        self._waiting: dict[int, None] = dict.fromkeys(range(partitions))  # of those, who has not resumed
        self._killed_at = -1.0  # at first every partition has to be heard of once
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
                self._write(written % self._partitions)
                written += 1
                self._producer.poll(0)
            else:
                self._producer.poll(poll_s)

    def _write(self, partition: int) -> None:
        told = partial(self._delivered, partition, time.monotonic())
        try:
            self._producer.produce(self._topic, value, partition=partition, on_delivery=told)
        except BufferError:
            self._producer.poll(poll_s)

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
        """Until every partition has answered once."""
        self._wait()

    def lost(self, partitions: list[int], killed_at: float) -> Failover:
        """The leader of these partitions was killed at that time; waits until all of them have resumed."""
        self._resumed = []
        self._all_resumed.clear()
        self._killed_at = killed_at
        self._waiting = dict.fromkeys(partitions)
        self._urgent += partitions
        self._wait()
        return Failover(partitions=len(partitions), median_s=median(self._resumed), last_s=max(self._resumed))

    def _wait(self) -> None:
        if not self._all_resumed.wait(resumed_within_s):
            raise TimeoutError(f"{len(self._waiting)} partitions were not answered within {resumed_within_s:g} s")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(resumed_within_s)


def kill_a_leader(cluster: Cluster, topic: str, load: Load) -> Failover:
    """Kill whoever leads most of a topic, see everybody resume, and bring it back."""
    led: dict[int, list[int]] = {}
    for one in cluster.look(cluster.ids[0]).partitions:
        if one.topic == topic and one.leader is not None:
            led.setdefault(one.leader, []).append(one.partition)
    victim = max(led, key=lambda broker: len(led[broker]))
    killed_at = time.monotonic()
    cluster.kill(victim)
    found = load.lost(led[victim], killed_at)
    cluster.restart(victim)
    cluster.wait_until_healthy(healthy_within_s)
    return found
