"""DMQP on three brokers, one of which is killed: what was acknowledged comes out, and nothing comes out twice."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from compat.dmqp.dmqp_client import Client, TryAgain

T = TypeVar("T")

BROKERS = 3
TOPIC = 4
DEADLINE_S = 120.0


class Process:
    """One broker with a DMQP door."""

    def __init__(self, folder: Path, join: str) -> None:
        line = [sys.executable, "-m", "tailrace", "serve", "--data-dir", str(folder)]
        line += ["--kafka-port", "0", "--dmqp-port", "0", "--fsync", "never", *(["--join", join] if join else [])]
        environment = {**os.environ, "TAILRACE_DMQP_SECURITY_PROTOCOL": "PLAINTEXT"}
        self.log = folder.with_suffix(".log").open("wb")
        self.process = subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout is not None
        ready = dict(part.split("=") for part in self.process.stdout.readline().decode().split()[1:])
        self.kafka = ready["kafka"]
        self.port = int(ready["dmqp"].rpartition(":")[2])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()


@contextmanager
def three(folder: Path) -> Iterator[list[Process]]:
    processes = [Process(folder / "1", "")]
    try:
        processes += [Process(folder / str(number), processes[0].kafka) for number in range(2, BROKERS + 1)]
        yield processes
    finally:
        for one in reversed(processes):
            one.close()


class Caller:
    """A client that goes to another broker when one does not answer."""

    def __init__(self, ports: list[int], seed: int) -> None:
        self._ports = ports
        self._chance = random.Random(seed)
        self._client: Client | None = None

    def call(self, work: Callable[[Client], T], on_unknown: Callable[[], None]) -> T:
        """`on_unknown` is called for each attempt of which nobody knows what became."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            try:
                if self._client is None:
                    self._client = Client("127.0.0.1", self._chance.choice(self._ports), plain=True)
            except OSError:
                continue
            try:
                return work(self._client)
            except TryAgain:
                on_unknown()
            except OSError:
                on_unknown()
                self._client.close()
                self._client = None
        raise AssertionError(f"nothing worked for {DEADLINE_S:g} s")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()


def in_threads(*works: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.chaos
@pytest.mark.long
def test_what_was_acknowledged_comes_out_once_although_a_broker_is_killed(tmp_path: Path) -> None:
    each = 150
    acknowledged: list[bytes] = []
    attempts: Counter[bytes] = Counter()  # pushes of which nobody knows whether they are stored
    popped: Counter[bytes] = Counter()
    lost_pops: list[None] = []
    enough = threading.Event()

    with three(tmp_path) as processes:
        ports = [one.port for one in processes]

        def push(number: int) -> None:
            caller = Caller(ports, number)
            for count in range(each):
                payload = b"%d-%d" % (number, count)
                caller.call(partial(Client.push, topic=TOPIC, payload=payload), partial(attempts.update, [payload]))
                acknowledged.append(payload)
                if len(acknowledged) > each:
                    enough.set()
            caller.close()

        def kill() -> None:
            assert enough.wait(DEADLINE_S)
            processes[1].kill()

        in_threads(*(partial(push, number) for number in range(3)), kill)

        def pop(number: int) -> None:
            caller = Caller([ports[0], ports[2]], number)
            while True:
                message = caller.call(partial(Client.pop, topic=TOPIC), lambda: lost_pops.append(None))
                if message is None:
                    break
                popped.update([message.payload])
            caller.close()

        in_threads(lambda: pop(1), lambda: pop(2))

    assert len(acknowledged) == 3 * each
    missing = [payload for payload in acknowledged if not popped[payload]]
    assert len(missing) <= len(lost_pops), (missing, len(lost_pops))
    too_often = {payload: count for payload, count in popped.items() if count > 1 + attempts[payload]}
    assert not too_often
    assert set(popped) <= set(acknowledged)


@pytest.mark.chaos
@pytest.mark.long
def test_no_message_is_given_twice_although_a_broker_is_killed_while_clients_pop(tmp_path: Path) -> None:
    count = 300
    popped: Counter[bytes] = Counter()
    unknown: list[None] = []
    enough = threading.Event()

    with three(tmp_path) as processes:
        ports = [one.port for one in processes]
        with Client("127.0.0.1", ports[2], plain=True) as client:
            assert client.push_all(TOPIC, (b"%d" % number for number in range(count))) == count

        def pop(number: int) -> None:
            caller = Caller(ports, number)
            while True:
                message = caller.call(partial(Client.pop, topic=TOPIC), lambda: unknown.append(None))
                if message is None:
                    break
                popped.update([message.payload])
                if sum(popped.values()) > count // 4:
                    enough.set()
            caller.close()

        def kill() -> None:
            assert enough.wait(DEADLINE_S)
            processes[0].kill()

        in_threads(lambda: pop(1), lambda: pop(2), kill)

    assert not {payload: times for payload, times in popped.items() if times > 1}
    assert count - len(popped) <= len(unknown)
