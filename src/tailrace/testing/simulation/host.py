"""One process's view of the machine it runs on."""

from collections.abc import Callable

from tailrace.testing.simulation.incarnation import Incarnation


class SimHost:
    def __init__(self, process: Incarnation, boot_id: str) -> None:
        self._process = process
        self._boot_id = boot_id
        self.stop_callbacks: list[Callable[[], None]] = []

    def boot_id(self) -> str:
        self._process.check()
        return self._boot_id

    def process_id(self) -> int:
        self._process.check()
        return 1000 + self._process.number

    def on_stop(self, callback: Callable[[], None]) -> None:
        self._process.check()
        self.stop_callbacks[:] = [callback]  # as a signal has one handler
