"""A pipeline that consumes, transforms and produces on three brokers, while workers and brokers are killed at random.

In the end the output holds each input exactly once, and nothing that was aborted was ever delivered.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.testing import Cluster
from tailrace.testing.transaction_history import Reader, ReadRecord, TransactionHistory, violations
from tests.chaos.diary import Diary
from tests.chaos.storm import kept_on_failure, log_into, make_topic
from tests.chaos.transformer import PATIENT
from tests.chaos.workers import Worker

PARTITIONS: Final = 4
PER_SECOND: Final = 200.0
PROGRESS_WITHIN_S: Final = 60.0
SETTLED_WITHIN_S: Final = 90.0
LOOK_S: Final = 0.02
SETTINGS: Final[dict[str, Any]] = {"group_min_session_timeout_ms": 500, "group_initial_rebalance_delay_ms": 0}


class Feeder(threading.Thread):
    """Writes the input, each value once, as fast as `PER_SECOND` says."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0, **PATIENT}
        )
        self._topic = topic
        self._ended = threading.Event()
        self.sent: list[tuple[str, str]] = []  # partition and value
        self.start()

    def run(self) -> None:
        while not self._ended.wait(1 / PER_SECOND):
            number = len(self.sent)
            partition, value = number % PARTITIONS, f"v{number}"
            self._producer.produce(self._topic, value, partition=partition)
            self.sent.append((str(partition), value))

    def stop(self) -> None:
        self._ended.set()
        self.join()
        assert self._producer.flush(SETTLED_WITHIN_S) == 0


class CommittedReader(threading.Thread):
    """Reads the output as those who want committed records only do."""

    def __init__(self, name: str, bootstrap: str, topic: str) -> None:
        super().__init__(name=name, daemon=True)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"reader-{name}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
                **PATIENT,
            }
        )
        self._consumer.assign([TopicPartition(topic, one, 0) for one in range(PARTITIONS)])
        self._ended = threading.Event()
        self.polls: list[tuple[ReadRecord, ...]] = []
        self.count = 0
        self.start()

    def run(self) -> None:
        while not self._ended.is_set():
            got = [one for one in self._consumer.consume(100, 0.1) if one.error() is None]
            if got:
                seen = [
                    ReadRecord(str(one.partition()), one.offset() or 0, (one.value() or b"").decode()) for one in got
                ]
                self.polls.append(tuple(seen))
                self.count += len(got)
        self._consumer.close()

    def stop(self) -> Reader:
        self._ended.set()
        self.join()
        return Reader(name=self.name, polls=tuple(self.polls))


class Pipeline:
    def __init__(self, cluster: Cluster, seed: int, diary: Diary) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._diary = diary
        for topic in ("source", "target"):
            make_topic(cluster, topic, PARTITIONS)
        self._workers = [Worker(cluster.bootstrap, "source", "target", "pipeline", f"worker-{n}") for n in range(2)]
        self._companion = CommittedReader("companion", cluster.bootstrap, "target")
        self._feeder = Feeder(cluster.bootstrap, "source")

    def suffer(self, kills: int) -> None:
        for _ in range(kills):
            self._get_on()
            time.sleep(self._random.uniform(0.0, 0.5))  # until a moment that nobody can foresee: what this is about
            if self._random.random() < 0.5:
                self._kill_worker()
            else:
                self._kill_broker()
        self._get_on()

    def _kill_worker(self) -> None:
        number = self._random.randrange(len(self._workers))
        self._diary.note(f"kill worker {number}")
        self._workers[number].kill()
        self._workers[number].start()

    def _kill_broker(self) -> None:
        victim = self._random.choice(self._cluster.ids)
        self._diary.note(f"kill broker {victim}")
        self._cluster.kill(victim)
        time.sleep(self._random.uniform(0.0, 1.0))
        self._cluster.restart(victim)

    def _get_on(self) -> None:
        """Until something more was committed by somebody."""
        before = self._committed
        self._until(lambda: self._committed > before + 1, PROGRESS_WITHIN_S)

    @property
    def _committed(self) -> int:
        return sum(worker.committed for worker in self._workers)

    def _until(self, condition: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, (
                f"not within {within_s:g} s; {self._committed} were committed, "
                f"{self._companion.count} of {len(self._feeder.sent)} records read"
            )
            for number, worker in enumerate(self._workers):
                if not worker.is_running:
                    self._diary.note(f"worker {number} gave up")
                    worker.start()
            time.sleep(LOOK_S)

    def finish(self) -> Sequence[str]:
        """All that is wrong with what came of it."""
        self._feeder.stop()
        again = CommittedReader("in the end", self._cluster.bootstrap, "target")
        try:
            wanted = len(self._feeder.sent)
            self._until(lambda: min(again.count, self._companion.count) >= wanted, SETTLED_WITHIN_S)
        finally:
            self.stop_workers()
            readers = (self._companion.stop(), again.stop())
        transactions = tuple(one for worker in self._workers for one in worker.transactions)
        self._diary.note(f"{len(transactions)} transactions, {self._committed} committed")
        history = TransactionHistory(transactions=transactions, readers=readers)
        return [*miscounted(self._feeder.sent, readers[1].records), *violations(history)]

    def stop_workers(self) -> None:
        for worker in self._workers:
            worker.kill()


def miscounted(sent: Sequence[tuple[str, str]], seen: Iterable[ReadRecord]) -> list[str]:
    """What does not stand in the output as often as it was put in, be it that it never was."""
    found = Counter((one.partition, one.value.partition("/")[0]) for one in seen)
    wanted = Counter(sent)
    return [
        f"{one} stands {found[one]} times, and was sent {wanted[one]} times"
        for one in dict.fromkeys([*found, *wanted])
        if found[one] != wanted[one]
    ]


def exactly_once(seed: int, kills: int) -> None:
    with kept_on_failure("exactly-once", f"seed {seed}, {kills} kills") as folder:
        diary = Diary(folder / "diary.txt")
        with Cluster(3, data_dir=folder / "data", proxied=False, on_log=log_into(folder), **SETTINGS) as cluster:
            pipeline = Pipeline(cluster, seed, diary)
            try:
                pipeline.suffer(kills)
                wrong = pipeline.finish()
            finally:
                pipeline.stop_workers()
        assert not wrong, "\n".join(["this is not exactly once:", *wrong[:20]])
