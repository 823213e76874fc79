"""A queue on three brokers whose workers and brokers are killed at random, with messages that fail, hang and kill.

Each good message is handled at least once. Poison, and nothing else, is in the dead letters. How many good messages
were handled more than once is counted: the promise is at least once.
"""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from tailrace.testing import Cluster
from tests.chaos.diary import Diary
from tests.chaos.share_group_admin import change_group, unfinished
from tests.chaos.storm import SETTLED_WITHIN_S, kept_on_failure, log_into, make_topic
from tests.chaos.transformer import PATIENT

QUEUE: Final = "jobs"
DEAD: Final = "jobs.dead"
PARTITIONS: Final = 7  # coprime with SLOW_EVERY and POISON_EVERY, so that all partitions get slow messages and poison
WORKERS: Final = 7
DELIVERY_LIMIT: Final = 5
POISON_EVERY: Final = 100
SLOW_EVERY: Final = 20
CRASHES_MAX: Final = 20  # each kills as many workers as the delivery limit says
LOOK_S: Final = 0.05
PROGRESS_WITHIN_S: Final = 120.0
GROUP_SETTINGS: Final = {
    "share.auto.offset.reset": "earliest",
    "share.session.timeout.ms": "3000",  # a partition whose only worker was killed waits for so long
    "share.heartbeat.interval.ms": "500",
    "share.record.lock.duration.ms": "3000",
    "share.delivery.count.limit": str(DELIVERY_LIMIT),
    "share.retry.backoff.ms": "50",
    "share.retry.backoff.max.ms": "1000",
    "errors.deadletterqueue.topic.name": DEAD,
}
REASONS: Final = {"fails": "exceeded", "crashes": "exceeded", "rejected": "rejected"}
root = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    seed: int
    items: int
    kills: int
    remembers_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    repeats: int  # of good messages that were handled to the end before
    twice_dead: int  # dead letters that were written more than once


class DeadLetter(NamedTuple):
    value: str
    key: str
    headers: dict[str, str]


def values(items: int) -> Iterator[str]:
    """One in a hundred is poison, of three kinds; one in twenty is slow."""
    crashes = 0
    for number in range(items):
        if number % POISON_EVERY == POISON_EVERY // 2:
            kind = ("fails", "crashes", "rejected")[number // POISON_EVERY % 3]
            crashes += kind == "crashes"
            yield f"{'fails' if crashes > CRASHES_MAX and kind == 'crashes' else kind}-{number}"
        else:
            yield f"{'slow' if number % SLOW_EVERY == 0 else 'plain'}-{number}"


def is_poison(value: str) -> bool:
    return value.partition("-")[0] in REASONS


class Worker:
    """A process that is started again whenever it ended."""

    def __init__(self, bootstrap: str, remembers_s: float, log: Path, handled: dict[str, None]) -> None:
        self._words = [bootstrap, QUEUE, str(remembers_s)]
        self._log = log
        self._handled_by_any = handled
        self.handled: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        with open(self._log, "a", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.queue_worker", *self._words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=root,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )
        self._listener = threading.Thread(target=self._listen, args=(self._process,), daemon=True)
        self._listener.start()

    def _listen(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.handled[line.strip()] += 1
            self._handled_by_any[line.strip()] = None

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()


class QueueUnderFire:
    def __init__(self, cluster: Cluster, soak: Soak, diary: Diary) -> None:
        self._cluster = cluster
        self._soak = soak
        self._random = random.Random(soak.seed)
        self._diary = diary
        self._sent = list(values(soak.items))
        make_topic(cluster, QUEUE, PARTITIONS)
        make_topic(cluster, DEAD, PARTITIONS)
        change_group(cluster.bootstrap, QUEUE, GROUP_SETTINGS)
        folder = diary.path.parent
        self._handled: dict[str, None] = {}  # all messages that were handled, as far as workers have said so
        self._workers = [
            Worker(cluster.bootstrap, soak.remembers_s, folder / f"worker-{number}.log", self._handled)
            for number in range(WORKERS)
        ]
        self._unsent = len(self._sent)
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def _send(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self._cluster.bootstrap, "enable.idempotence": True, "log_level": 0, **PATIENT}
        )
        for number, value in enumerate(self._sent):
            headers: list[tuple[str, str | bytes | None]] = [("job", value)]
            while True:
                try:
                    producer.produce(QUEUE, value, f"key {value}", number % PARTITIONS, headers=headers)
                    break
                except BufferError:  # its queue is full while a broker is away
                    producer.poll(0.1)
        self._unsent = producer.flush(SETTLED_WITHIN_S)

    def suffer(self) -> None:
        """Kill workers and brokers, evenly spread over the work."""
        good = sum(not is_poison(value) for value in self._sent)
        for number in range(self._soak.kills):
            wanted = (number + 1) * good // (self._soak.kills + 2)
            self._until(lambda: len(self._handled) >= wanted, f"{wanted} messages are handled")  # noqa: B023
            if self._random.random() < 0.5:
                worker = self._random.randrange(WORKERS)
                self._diary.note(f"kill worker {worker}")
                self._workers[worker].kill()
            else:
                victim = self._random.choice(self._cluster.ids)
                self._diary.note(f"kill broker {victim}")
                self._cluster.kill(victim)
                time.sleep(self._random.uniform(0.0, 1.0))  # until a moment that nobody can foresee
                self._cluster.restart(victim)
        self._until(self._is_finished, "everything is finished")

    def _is_finished(self) -> bool:
        return not self._sender.is_alive() and unfinished(self._cluster.bootstrap, QUEUE) == 0

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait, as long as there is progress; workers that ended are started again."""
        before, deadline = -1, 0.0
        while not condition():
            now, done = time.monotonic(), len(self._handled)
            if done != before:
                before, deadline = done, now + PROGRESS_WITHIN_S
            assert now < deadline, f"no progress for {PROGRESS_WITHIN_S:g} s, not yet: {what}; {done} are handled"
            for worker in self._workers:
                if not worker.is_running:
                    worker.start()
            time.sleep(LOOK_S)

    def stop(self) -> None:
        for worker in self._workers:
            worker.kill()

    def judge(self) -> tuple[list[str], Soaked]:
        """What is wrong, and what was counted."""
        self._sender.join(SETTLED_WITHIN_S)
        handled = sum((worker.handled for worker in self._workers), Counter[str]())
        letters = read_dead_letters(self._cluster.bootstrap)
        wrong = [f"{self._unsent} messages were not written"] if self._unsent else []
        wrong += [f"{value} was never handled" for value in self._sent if not is_poison(value) and not handled[value]]
        wrong += [f"{value} was handled, though poison" for value in handled if is_poison(value)]
        dead = Counter(letter.value for letter in letters)
        wrong += [f"{value} has no dead letter" for value in self._sent if is_poison(value) and not dead[value]]
        wrong += [f"{value} is good, and has a dead letter" for value in dead if not is_poison(value)]
        wrong += [complaint for letter in letters for complaint in complaints_about(letter, self._sent)]
        soaked = Soaked(repeats=sum(handled.values()) - len(handled), twice_dead=sum(dead.values()) - len(dead))
        return wrong, soaked


def complaints_about(letter: DeadLetter, sent: Sequence[str]) -> list[str]:
    """Whether a dead letter of poison is what the record was, and says where it was and why."""
    kind, _, number = letter.value.partition("-")
    if kind not in REASONS:
        return []
    wanted = {
        "job": letter.value,
        "__dlq.errors.topic": QUEUE,
        "__dlq.errors.partition": str(int(number) % PARTITIONS),
        "__dlq.errors.group": QUEUE,
        "tailrace.dlq.reason": REASONS[kind],
    }
    if kind != "rejected":
        wanted["__dlq.errors.delivery.count"] = str(DELIVERY_LIMIT)
    wrong = {name: letter.headers.get(name) for name, value in wanted.items() if letter.headers.get(name) != value}
    missing = [name for name in ("offset", "delivery.count", "message") if f"__dlq.errors.{name}" not in letter.headers]
    complaints = [f"the dead letter of {letter.value} has {wrong}, lacks {missing}"] if wrong or missing else []
    if letter.key != f"key {letter.value}":
        complaints.append(f"the dead letter of {letter.value} has key {letter.key}")
    return complaints


def read_dead_letters(bootstrap: str) -> list[DeadLetter]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "enable.auto.commit": False, **PATIENT})
    try:
        found: list[DeadLetter] = []
        for number in range(PARTITIONS):
            place = TopicPartition(DEAD, number, 0)
            _, end = consumer.get_watermark_offsets(place, timeout=SETTLED_WITHIN_S)
            consumer.assign([place])
            while end and consumer.position([place])[0].offset < end:
                for message in consumer.consume(500, timeout=0.1):
                    assert message.error() is None
                    headers: Any = message.headers() or []  # pairs
                    named = {name: _text(value) for name, value in headers}
                    found.append(DeadLetter(_text(message.value()), _text(message.key()), named))
        return found
    finally:
        consumer.close()


def _text(data: str | bytes | None) -> str:
    return data.decode() if isinstance(data, bytes) else data or ""


def soak_queue(soak: Soak) -> Soaked:
    """Raises an AssertionError with all complaints."""
    with kept_on_failure("queue-soak", f"{soak}") as folder:
        diary = Diary(folder / "diary.txt")
        diary.note(f"{soak}")
        with Cluster(3, data_dir=folder / "data", proxied=False, on_log=log_into(folder)) as cluster:
            queue = QueueUnderFire(cluster, soak, diary)
            try:
                queue.suffer()
            finally:
                queue.stop()
            wrong, soaked = queue.judge()
        diary.note(f"{soak.items} messages: {soaked.repeats} repeats, {soaked.twice_dead} dead letters written twice")
        assert not wrong, "\n".join([f"{len(wrong)} promises were broken:", *wrong[:20]])
    return soaked
