"""The REST API in front of a broker, on an event loop in a thread of its own; and `curl`, as people use it."""

import asyncio
import json
import shutil
import subprocess
import threading
from contextlib import suppress
from itertools import count
from typing import Any, NamedTuple, Self

from tailrace.client.cluster import Limits
from tailrace.doors import upstream
from tailrace.doors.http.origins import origins_of
from tailrace.doors.http.rest.mounting import rest_api
from tailrace.doors.http.rest.operations import OPERATIONS
from tailrace.doors.http.routes import Router
from tailrace.doors.http.server import HttpOptions, HttpServer
from tailrace.doors.upstream import Upstream, driver_for
from tailrace.model.addresses import Address, parse_addresses
from tailrace.model.ids import BrokerId
from tailrace.ports import system_ports

CURL = shutil.which("curl")
HOST = "127.0.0.1"
NOT_REACHED = (7, 52, 56)  # exit codes of curl
NUMBERS = count()


class Answered(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> str:
        """What kind of problem it is."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        kind: str = self.json["type"]
        return kind.removeprefix("urn:tailrace:problem:")


class Unreachable(Exception):
    """There is nobody at this address, or nobody any more."""


class Curl:
    """Requests to one HTTP door by `curl`."""

    def __init__(self, url: str = "") -> None:
        self.url = url

    def curl(self, path: str, *options: str, data: bytes | None = None, follow: bool = False) -> Answered:
        """One request by `curl`; `data` is the body, by default as JSON."""
        assert CURL is not None
        command = [CURL, "-sS", "--max-time", "60", "-D", "/dev/stderr", *options]
        command += ["-L"] if follow else []
        if data is not None:
            command += ["--data-binary", "@-"]
            if not any(one.lower().startswith("content-type:") for one in options):
                command += ["-H", "content-type: application/json"]
        done = subprocess.run([*command, self.url + path], input=data or b"", capture_output=True, check=False)
        if done.returncode in NOT_REACHED:
            raise Unreachable(done.stderr.decode())
        assert done.returncode == 0, done.stderr.decode()
        head = done.stderr.decode().strip().split("\r\n\r\n")[-1]
        status, *lines = head.splitlines()
        headers = dict(line.split(": ", 1) for line in lines if ": " in line)
        return Answered(int(status.split()[1]), {name.lower(): one for name, one in headers.items()}, done.stdout)

    def get(self, path: str) -> Answered:
        return self.curl(path)

    def send(self, method: str, path: str, body: Any = None, *options: str, follow: bool = False) -> Answered:
        data = None if body is None else json.dumps(body).encode()
        return self.curl(path, "-X", method, *options, data=data, follow=follow)

    def post(self, path: str, body: Any = None, *options: str, follow: bool = False) -> Answered:
        return self.send("POST", path, body, *options, follow=follow)


class RestDoor(Curl):
    """Context manager. `broker`: as which one this door answers; None: as a gateway."""

    def __init__(self, bootstrap: str, broker: int | None = None, limits: Limits = upstream.LIMITS) -> None:
        super().__init__()
        self.others: dict[int, Address] = {}  # the HTTP doors of other brokers
        self.port = 0
        self._bootstrap = parse_addresses(bootstrap)
        self._broker = None if broker is None else BrokerId(broker)
        self._limits = limits
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _endpoints(self, _: str) -> dict[BrokerId, Address]:
        own = {} if self._broker is None else {self._broker: Address(HOST, self.port)}
        return {**own, **{BrokerId(one): at for one, at in self.others.items()}}

    async def _open(self) -> None:
        ports = system_ports()
        self._upstream = Upstream(
            driver_for(ports, ports.net), lambda: self._bootstrap, self._endpoints, broker_id=self._broker
        )
        self._upstream.cluster.limits = self._limits
        router = Router([rest_api(self._upstream, ports)])
        options = HttpOptions(host=HOST, port=0, origins=origins_of(HOST, HOST))
        self.server = HttpServer(ports.net, ports.clock, router, options)
        await self.server.listen()
        self.port = self.server.port
        self.url = f"http://{HOST}:{self.port}"
        self._sweep = self._loop.create_task(self.server.sweep())
        self.server.open()

    async def _close(self) -> None:
        await self.server.stop(2.0)
        self._sweep.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweep
        await self._upstream.close()


def made(door: Curl, partitions: int = 1) -> str:
    """A new topic."""
    name = new_name()
    assert door.post("/v1/topics", {"name": name, "partitions": partitions}).status == 201
    return name


def new_name() -> str:
    return f"t{next(NUMBERS)}"


def fits(answered: Answered, id: str) -> Any:
    """The body of an answer, which must be as documented."""
    operation = next(one for one in OPERATIONS if one.id == id)
    assert answered.status in operation.answers, answered
    shape = operation.answers[answered.status].shape
    if shape is None:
        assert answered.body == b""
        return None
    return shape.check(answered.json, "")


def write(door: Curl, topic: str, *values: Any, **fields: Any) -> list[dict[str, int]]:
    answered = door.post(f"/v1/topics/{topic}/records", {"records": [{"value": one, **fields} for one in values]})
    written: list[dict[str, int]] = fits(answered, "produce")["written"]
    return written
