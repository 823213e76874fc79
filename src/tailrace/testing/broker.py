"""A real broker for tests: its own process, a free port, a directory of its own.

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})

`Broker(http_port=0)` opens the HTTP door, too, at `broker.endpoints["http"]`; `grpc_port` and `dmqp_port` do the same.

It is a `LocalBroker` with two differences: groups react quickly unless the test sets otherwise
(`QUICK_GROUPS`), and the test can pause the process, as a machine that hangs does.
"""

import os
import signal
from types import MappingProxyType
from typing import Final

from tailrace.local.broker import BrokerFailed, LocalBroker

__all__ = ["QUICK_GROUPS", "Broker", "BrokerFailed"]

# Tests wait for groups: the first member need not wait for more, and members learn of a new assignment soon.
QUICK_GROUPS: Final = MappingProxyType(
    {
        "group_initial_rebalance_delay_ms": 0,
        "group_consumer_heartbeat_interval_ms": 500,
        "group_share_heartbeat_interval_ms": 500,
    }
)


class Broker(LocalBroker):
    """A broker process for tests: `Broker(num_partitions=4)`; see `LocalBroker` for its arguments and methods."""

    DEFAULTS = QUICK_GROUPS
    _paused_pid: int | None = None

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
