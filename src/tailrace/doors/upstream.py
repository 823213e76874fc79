"""The cluster that client doors serve, and what they need of the process that they run in.

In a broker the upstream is its own cluster: requests to the broker itself go through memory, those to other brokers
through the client lane of their peer port. In a gateway it is any cluster that speaks Kafka's protocol.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.batching import BatchLimits
from tailrace.client.cluster import Cluster, Limits
from tailrace.client.producer import ProducerOptions
from tailrace.client.producers import Producers
from tailrace.client.sasl import Sasl
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.model.limits import MiB
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports, Tls

if TYPE_CHECKING:
    from tailrace.client.taking import Takers

CLIENT_ID: Final = "tailrace-doors"
# Callers of a door have timeouts of their own, often of 30 s: the door's error must arrive before. A caller that
# mistypes the name of a topic waits for it, too.
LIMITS: Final = Limits(request_s=20.0, retry_s=20.0, unknown_s=1.0)
# A topic that does not exist is an error that the door reports in its own words.
PRODUCER_OPTIONS: Final = ProducerOptions(
    limits=BatchLimits(buffer_bytes=4 * MiB, delivery_s=20.0), timeout_ms=20_000, creates_topics=False
)


class Upstream:
    def __init__(
        self,
        driver: AsyncioDriver,
        bootstrap: Callable[[], Sequence[Address]],
        endpoints: Callable[[str], Awaitable[Mapping[BrokerId, Address]]],
        *,
        broker_id: BrokerId | None = None,
        request_stop: Callable[[], None] | None = None,
    ) -> None:
        self._driver = driver
        self._bootstrap = bootstrap
        self._endpoints = endpoints
        self.broker_id: Final = broker_id  # of the broker in this process; None in a gateway
        self.request_stop: Final = request_stop  # stops this broker; None where callers have no broker to stop

    @cached_property
    def cluster(self) -> Cluster:
        """Routing and retries. Requests that a broker may hold for long need `with_own_connections`: a broker answers
        each connection in order. A broker can be reached once its doors are open."""
        return Cluster(self._driver, self._bootstrap(), LIMITS)

    @cached_property
    def producers(self) -> Producers:
        """Idempotent producers with acks=all, one per principal."""
        return Producers(self.cluster, PRODUCER_OPTIONS)

    @cached_property
    def takers(self) -> "Takers":
        """Take single messages as a member of a share group, and accept them durably."""
        from tailrace.client.taking import Takers  # not every door takes messages

        return Takers(self.cluster)

    async def endpoints(self, listener: str) -> Mapping[BrokerId, Address]:
        """Where clients reach the same door, by broker; in a gateway only itself."""
        return await self._endpoints(listener)

    async def close(self) -> None:
        """Let producers flush, and close all connections."""
        for name in ("takers", "producers"):
            if name in self.__dict__:
                await getattr(self, name).close()
        if "cluster" in self.__dict__:
            self.cluster.close()


class ClientHost(Protocol):
    """The process of a client door: a broker or a gateway."""

    @property
    def ports(self) -> Ports: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def advertised_host(self) -> str:
        """The host name that clients use to reach this process."""

    @property
    def upstream(self) -> Upstream: ...

    def net(self, listener: str) -> Net:
        """The network as this listener uses it: plain, or with TLS."""

    def tls(self, listener: str) -> Tls | None:
        """The certificates of a listener that has sockets of its own; None if it is plain."""

    def add_certificates(self, listener: str, tls: Tls) -> None:
        """Reload these with those of the other listeners, when the process is told to."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; if it fails, the process fails."""


def driver_for(ports: Ports, net: Net, *, tls: Tls | None = None, sasl: Sasl | None = None) -> AsyncioDriver:
    """The driver of a door's client, over the network that leads upstream."""
    return AsyncioDriver(net, ports.clock, ports.random, CLIENT_ID, tls=tls, sasl=sasl)
