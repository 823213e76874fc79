"""A real broker for tests: its own process, a free port, a directory of its own.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

It is a `LocalBroker` with two differences: consumer groups react quickly unless the test sets otherwise
(`QUICK_GROUPS`), and the test can pause the process, as a machine that hangs does.
"""

import os
import signal
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from tailrace.local.broker import BrokerFailed, LocalBroker

__all__ = ["QUICK_GROUPS", "Broker", "BrokerFailed"]

# Tests wait for groups: the first member need not wait for more, and members learn of a new assignment soon.
QUICK_GROUPS: Final = MappingProxyType(
    {"group_initial_rebalance_delay_ms": 0, "group_consumer_heartbeat_interval_ms": 500}
)


class Broker(LocalBroker):
    """A broker process. `settings` are those of `tailrace serve`, spelled as in YAML: `Broker(num_partitions=4)`.

    Without `data_dir` the data is in a temporary directory, which `close` removes; a given directory is kept. `kill`
    and `stop` leave the data alone, so that `restart` finds it. `on_log` gets each line of the log when it is written.
    """

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        on_log: Callable[[str], None] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(data_dir=data_dir, on_log=on_log, **{**QUICK_GROUPS, **settings})
        self._paused_pid: int | None = None

    @property
    def is_paused(self) -> bool:
        return self.is_running and self.pid == self._paused_pid

    def pause(self) -> None:
        """Stop the process from running, as a machine that hangs does: SIGSTOP. Returns when it has taken effect."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self._paused_pid = self.pid

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)
        self._paused_pid = None
