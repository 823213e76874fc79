"""Apache Kafka 4.3, one node or several; its jars come from Maven Central (`jars`).

Kafka's defaults, except what a single node needs (replication factors of 1) and immediate deletion, so that the files
of one round do not burden the next. In a cluster each node is also a controller, as each of ours is.
"""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from benchmarks import frames
from benchmarks import jars as maven
from benchmarks.brokers import Brokers
from benchmarks.connection import Connection, Refused
from benchmarks.processes import DidNotStart, Server, stop

VERSION: Final = maven.KAFKA_VERSION
CLUSTER_ID: Final = "dGFpbHJhY2UtYmVuY2htYQ"
HEAP: Final = "1g"
START_TIMEOUT_SECONDS: Final = 60.0
ARTIFACTS: Final = (maven.kafka_part("kafka_2.13"), maven.kafka_part("kafka-tools"), maven.LOG4J)
SETTINGS: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.segment.delete.delay.ms=0
"""


def jars() -> Path:
    """The folder with Kafka's jars, downloaded the first time."""
    return maven.jars(f"kafka-{VERSION}", ARTIFACTS)


@contextmanager
def serving(folder: Path, more: str = "") -> Iterator[Server]:
    """Kafka with an empty log in `folder`, stopped at the end. `more` is added to its settings."""
    with cluster(folder, 1, more) as brokers:
        yield brokers.servers[0]


@contextmanager
def cluster(folder: Path, count: int = 3, more: str = "") -> Iterator[Brokers]:
    """Nodes with empty logs, all up and in sync."""
    ports = free_ports(2 * count)
    addresses = list(zip(ports[::2], ports[1::2], strict=True))  # the port for clients, the controller's port
    voters = ",".join(f"{node}@127.0.0.1:{controller}" for node, (_, controller) in enumerate(addresses, 1))
    with ExitStack() as stack:
        nodes = []
        for node, (port, controller) in enumerate(addresses, 1):
            own = folder / f"node-{node}"
            own.mkdir()
            values = {"node": node, "voters": voters, "port": port, "controller": controller, "data": own / "data"}
            (own / "server.properties").write_text((SETTINGS + more).format(**values))
            nodes.append((port, stack.enter_context(started(own)), own / "kafka.log"))
        for port, process, log in nodes:
            wait_until_ready(process, port, log)
        servers = (Server(name="kafka", host="127.0.0.1", port=port, pid=process.pid) for port, process, _ in nodes)
        brokers = Brokers(servers=tuple(servers))
        brokers.wait_until_well()
        yield brokers


@contextmanager
def started(folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """One node, formatted and running."""
    java = ["java", f"-Xms{HEAP}", f"-Xmx{HEAP}", "-cp", f"{jars()}/*"]
    java.append(f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}")
    config, log = folder / "server.properties", folder / "kafka.log"
    (folder / "log4j2.properties").write_text(maven.LOG_SETTINGS)
    with log.open("ab") as out:
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config)]
        if subprocess.run(tool, stdout=out, stderr=out, check=False).returncode:
            raise DidNotStart(f"Kafka could not format its log:\n{log.read_text()[-1000:]}")
        process = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=out, stderr=out)
    try:
        yield process
    finally:
        stop(process)


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago: Kafka cannot choose its controller port itself."""
    with ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in held]


def wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while True:
        try:
            with Connection("127.0.0.1", port) as connection:
                connection.ask(frames.api_versions())
                return
        except (OSError, Refused):
            if process.poll() is not None or time.monotonic() > deadline:
                raise DidNotStart(f"Kafka did not start:\n{log.read_text()[-2000:]}") from None
            time.sleep(0.05)
