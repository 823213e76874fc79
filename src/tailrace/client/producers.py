"""Producers for doors: one per principal, so that what one caller does never fences or delays another.

    producers = Producers(cluster)
    with producers.of(caller.principal) as producer:
        written = await producer.send("orders", b"two coffees")
        await written

Each producer has a producer id, a buffer and connections of its own. If callers shared one, a caller that fills the
buffer would stop all of them, as would a batch whose sequence number is lost, because the epoch after it begins only
when no batch is in flight; and a broker answers each connection in order, so a batch that waits for its replicas would
hold up the batches of others behind it.

There are at most `PoolLimits.producers`, so all buffers together are bounded. A producer is idle if nobody uses it and
all its records are acknowledged. Idle ones are closed after a while, or when there is no room for another principal's.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Cluster
from tailrace.client.faults import ClientError
from tailrace.client.producer import Producer, ProducerOptions
from tailrace.model.frozen import frozen
from tailrace.model.limits import MiB

OPTIONS: Final = ProducerOptions(limits=BatchLimits(buffer_bytes=4 * MiB))


@frozen
class PoolLimits:
    producers: int = 100  # at a time
    idle_s: float = 60.0  # after which an idle producer is closed


class TooManyProducers(ClientError):
    """Other principals use all producers that there may be."""


class _Kept:
    """The producer of one principal."""

    __slots__ = ("cluster", "producer", "used_at", "users")

    def __init__(self, cluster: Cluster, options: ProducerOptions) -> None:
        self.cluster = cluster.with_own_connections(cluster.limits)
        self.producer = Producer(self.cluster, options)
        self.users = 0
        self.used_at = 0.0

    @property
    def is_idle(self) -> bool:
        return not self.users and not self.producer.unacknowledged_bytes

    async def close(self) -> None:
        await self.producer.close()
        self.cluster.close()


class Producers:
    def __init__(
        self,
        cluster: Cluster,
        options: ProducerOptions = OPTIONS,
        limits: PoolLimits = PoolLimits(),  # noqa: B008
    ) -> None:
        assert options.transactional_id is None, "producers with the same transactional id fence each other"
        self._cluster = cluster
        self._options = options
        self._limits = limits
        self._kept: dict[str, _Kept] = {}  # by principal, the one that was used last at the end
        self._closing: dict[asyncio.Task[None], None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._kept)

    @contextmanager
    def of(self, principal: str) -> Iterator[Producer]:
        """The producer of this principal, which stays open meanwhile. TooManyProducers if there is no room for it."""
        kept = self._kept.pop(principal, None)
        if kept is None:
            self._make_room()
            kept = _Kept(self._cluster, self._options)
        self._kept[principal] = kept
        kept.users += 1
        try:
            yield kept.producer
        finally:
            kept.users -= 1
            kept.used_at = self._cluster.driver.now()
            self._close_later()

    async def close(self) -> None:
        """Close all producers; each flushes first, beside the others."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for principal in list(self._kept):
            self._close(principal)
        await asyncio.gather(*self._closing)

    def _make_room(self) -> None:
        if len(self._kept) < self._limits.producers:
            return
        principal = next((one for one, kept in self._kept.items() if kept.is_idle), None)
        if principal is None:
            raise TooManyProducers(f"{len(self._kept)} principals are writing, which is the limit; try again later")
        self._close(principal)

    def _close(self, principal: str) -> None:
        task = asyncio.get_running_loop().create_task(self._kept.pop(principal).close())
        self._closing[task] = None
        task.add_done_callback(self._closing.pop)

    def _close_later(self) -> None:
        if self._timer is None and self._kept:
            self._timer = asyncio.get_running_loop().call_later(self._limits.idle_s, self._close_idle)

    def _close_idle(self) -> None:
        self._timer = None
        idle_since = self._cluster.driver.now() - self._limits.idle_s
        for principal, kept in list(self._kept.items()):
            if kept.is_idle and kept.used_at <= idle_since:
                self._close(principal)
        self._close_later()
