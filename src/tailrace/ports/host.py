"""The machine and the process: boot id, process id, signals."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Protocol


class Host(Protocol):
    def boot_id(self) -> str:
        """The id of this boot of the machine: data that was not synced before an earlier boot ended may be lost."""
        ...

    def process_id(self) -> int: ...

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of this process's environment that a library reads, unless it is set already."""
        ...

    def on_stop(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the process gets SIGINT or SIGTERM."""
        ...

    def on_reload(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop when the process gets SIGHUP, which would end it otherwise."""
        ...


class SystemHost:
    def boot_id(self) -> str:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
                return file.read().strip()
        except OSError:
            return "unknown"

    def process_id(self) -> int:
        return os.getpid()

    def set_variable(self, name: str, value: str) -> None:
        os.environ.setdefault(name, value)

    def on_stop(self, callback: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, callback)

    def on_reload(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, callback)
