"""Our broker, started as a user would start it, and clusters of it."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from benchmarks.brokers import Brokers
from benchmarks.processes import Server, serving
from tailrace.testing import Broker

Fsync = Literal["always", "never"]


def command(data: Path, fsync: Fsync) -> list[str]:
    serve = [sys.executable, "-m", "tailrace", "serve", "--host", "127.0.0.1", "--kafka-port", "0"]
    return [*serve, "--data-dir", str(data), "--fsync", fsync]


def broker(folder: Path, fsync: Fsync) -> AbstractContextManager[Server]:
    """A broker with an empty log in `folder`, stopped at the end."""
    return serving("tailrace", command(folder / "data", fsync), log=folder / "tailrace.log")


@contextmanager
def cluster(folder: Path, fsync: Fsync, count: int = 3) -> Iterator[Brokers]:
    """Brokers with empty logs, each in its own rack, connected directly."""
    started: list[Broker] = []
    with ExitStack() as stack:
        for number in range(1, count + 1):
            join = started[0].bootstrap if started else ""
            data = folder / f"broker-{number}"
            one = Broker(data_dir=data, fsync=fsync, broker_id=number, broker_rack=rack(number), join=join)
            started.append(stack.enter_context(one))
        brokers = Brokers(servers=tuple(map(as_server, started)))
        brokers.wait_until_well()
        yield brokers
        for one in started:
            one.ask_to_stop()  # all at once: a broker left without a quorum would wait for the others
        for one in started:
            one.wait_until_stopped()


def as_server(broker: Broker) -> Server:
    return Server(name="tailrace", host="127.0.0.1", port=broker.port, pid=broker.pid)


def rack(number: int) -> str:
    return f"rack-{number}"
