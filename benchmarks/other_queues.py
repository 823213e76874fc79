"""RabbitMQ and NATS with JetStream, one node each, started with empty folders; every port is on the loopback interface.

Their defaults, except addresses and folders. RabbitMQ writes a quorum queue's log with fsync before it confirms, as our
broker does with `always`; JetStream fsyncs every two minutes, so it compares with `never`.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.fetched import Missing
from benchmarks.go_programs import programs
from benchmarks.kafka import free_ports
from benchmarks.processes import DidNotStart, Server, stop

HOST: Final = "127.0.0.1"
START_TIMEOUT_SECONDS: Final = 60.0
RABBITMQ_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one on the PATH changes to another user
ONLY_LOOPBACK: Final = "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"


@contextmanager
def rabbitmq(folder: Path) -> Iterator[Server]:
    if not RABBITMQ_SCRIPT.exists() or shutil.which("epmd") is None:
        raise Missing("RabbitMQ is not installed here (Debian: apt-get install rabbitmq-server)")
    port, distribution, names = free_ports(3)
    own = {
        "HOME": str(folder),  # for the cookie
        "ERL_EPMD_PORT": str(names),
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ONLY_LOOPBACK,
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_LOGS": "-",
    }
    with (
        running(["epmd", "-address", HOST, "-port", str(names)], folder / "epmd.log"),
        served("rabbitmq", [str(RABBITMQ_SCRIPT)], port, folder / "rabbitmq.log", own) as server,
    ):
        yield server


@contextmanager
def nats(folder: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    command = [str(programs() / "nats-server"), "-a", HOST, "-p", str(port), "-js", "-sd", str(folder / "data")]
    with served("nats", command, port, folder / "nats.log") as server:
        yield server


@contextmanager
def served(
    name: str, command: Sequence[str], port: int, log: Path, more: Mapping[str, str] | None = None
) -> Iterator[Server]:
    with running(command, log, more) as process:
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise DidNotStart(f"{name} did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield Server(name=name, host=HOST, port=port, pid=process.pid)


@contextmanager
def running(
    command: Sequence[str], log: Path, more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("ab") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | (more or {}))
    try:
        yield process
    finally:
        stop(process)


def answers(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1.0).close()
    except OSError:
        return False
    return True
