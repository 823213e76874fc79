"""Servers of the client doors: a broker that has them in its own process, or a gateway in front of a broker."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import ours
from benchmarks.ours import Fsync
from benchmarks.processes import serving
from tailrace.testing import Broker

DOOR_PORTS: Final = ("http_port", "grpc_port", "dmqp_port")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorServer:
    endpoints: Mapping[str, str]  # HOST:PORT of each door
    pid: int
    data_dir: Path

    def port_of(self, door: str) -> int:
        return int(self.endpoints[door].rpartition(":")[2])

    @property
    def certificate(self) -> str:
        """The one that DMQP makes for itself."""
        return str(self.data_dir / "dmqp-certificate.pem")


ServeDoors = Callable[..., AbstractContextManager[DoorServer]]


@contextmanager
def in_broker(folder: Path, fsync: Fsync, **settings: object) -> Iterator[DoorServer]:
    """`settings`: the ports of the doors to open, and others of theirs."""
    with Broker(data_dir=folder / "data", on_log=None, fsync=fsync, **settings) as broker:
        yield DoorServer(endpoints=broker.endpoints, pid=broker.pid, data_dir=broker.data_dir)


@contextmanager
def at_gateway(folder: Path, fsync: Fsync, **settings: object) -> Iterator[DoorServer]:
    """The same doors in a process of their own."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "gateway.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML, too
    data_dir = folder / "gateway"
    with ours.broker(folder, fsync) as upstream:
        command = [sys.executable, "-m", "tailrace", "gateway", "--upstream", f"{upstream.host}:{upstream.port}"]
        command += ["--data-dir", str(data_dir), "--config", str(config)]
        with serving("gateway", command, log=folder / "gateway.log") as server:
            yield DoorServer(endpoints=server.endpoints, pid=server.pid, data_dir=data_dir)
