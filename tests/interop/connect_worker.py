"""A worker of Kafka Connect in distributed mode, and what its REST interface is asked.

A worker that rebalances answers 409, and asks to be asked again; one that has just started answers other errors, too.
"""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.interop import toolchains
from tests.interop.client import DEADLINE_S
from tests.interop.worker import Worker

WITHIN_S: Final = 6 * DEADLINE_S
ADVERTISED: Final = re.compile(r"Advertised URI: (http://\S+)")
LISTENS: Final = "REST resources initialized"
NOT_YET: Final = (404, 409, 500, 503)


class NotThere(Exception):
    """The worker does not know it."""


class ConnectWorker:
    def __init__(self, folder: Path, settings: Mapping[str, object]) -> None:
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._log = folder / "worker.log"
        self._process = Worker(toolchains.connect(properties), self._log)
        self._starts = 1
        try:
            self._wait_until_it_listens()
        except BaseException:
            self._process.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    def kill_and_restart(self) -> None:
        self._process.kill_and_restart()
        self._starts += 1
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        until = time.monotonic() + WITHIN_S
        while (text := self._log.read_text()).count(LISTENS) < self._starts:
            self._process.assert_runs()
            assert time.monotonic() < until, f"it does not listen:\n{text[-3000:]}"
            time.sleep(0.05)
        self._address = str(ADVERTISED.findall(text)[-1]).rstrip("/")
        self.ask("GET", "/connectors")

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer, once there is one."""
        until = time.monotonic() + WITHIN_S
        while True:
            try:
                return self._ask(method, path, body)
            except (OSError, TimeoutError) as failed:
                self._process.assert_runs()
                if time.monotonic() > until:
                    said = self._log.read_text()[-3000:]
                    raise AssertionError(f"{method} {path}: {failed}:\n{said}") from failed
                time.sleep(0.05)

    def _ask(self, method: str, path: str, body: object) -> Any:
        data = None if body is None else json.dumps(body).encode()
        wanted = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(wanted, timeout=WITHIN_S) as answer:
                told = answer.read()
        except urllib.error.HTTPError as refused:
            said = refused.read().decode()
            if refused.code == 404 and "error_code" in said:  # not the page of a server without resources yet
                raise NotThere(f"{method} {path}: {said}") from None
            if refused.code not in NOT_YET:
                raise AssertionError(f"{method} {path}: {refused.code}: {said}") from None
            raise TimeoutError(said) from None
        return json.loads(told) if told else None
