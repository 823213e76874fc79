"""The client doors in a process of their own: their upstream is any cluster that speaks Kafka's protocol.

All callers of a gateway share its identity upstream: each client of the gateway has the gateway's permissions there.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from tailrace.broker.certificates import Certificates
from tailrace.client.faults import ClientError, Unsupported, WrongCluster
from tailrace.client.sasl import Sasl
from tailrace.doors.upstream import Upstream, driver_for
from tailrace.model.addresses import Address
from tailrace.model.ids import BrokerId
from tailrace.model.listeners import GRPC_LISTENER, HTTP_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports, Tls

logger: Final = logging.getLogger(__name__)

FIRST_ANSWER_MAX_S: Final = 15.0  # after which a gateway that starts gives up
LOOK_AGAIN_S: Final = 10.0  # between two looks at the upstream
SHARE_FETCH: Final = 78  # the API key
LISTENERS: Final = (HTTP_LISTENER, GRPC_LISTENER)  # whose TLS is in listener.security.protocol.map
ITSELF: Final = BrokerId(0)  # the id of a gateway, where a door names the processes that serve it


class GatewayHost:
    def __init__(
        self, ports: Ports, settings: Settings, bootstrap: Sequence[Address], *, tls: Tls | None, sasl: Sasl | None
    ) -> None:
        """`tls` and `sasl` are for the connections to the upstream. BadCertificates of the doors' own TLS."""
        self.ports: Final = ports
        self.settings: Final = settings
        self.certificates: Final = Certificates(ports, settings, LISTENERS)
        self.upstream: Final = Upstream(
            driver_for(ports, ports.net, tls=tls, sasl=sasl), lambda: bootstrap, self._own_endpoints
        )
        self.failed: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()  # the first failure
        self.endpoints: dict[str, Address] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def advertised_host(self) -> str:
        return self.settings.host_for_clients

    def net(self, listener: str) -> Net:
        return self.certificates.net(listener)

    def tls(self, listener: str) -> Tls | None:
        return self.certificates.tls(listener)

    def add_certificates(self, listener: str, tls: Tls) -> None:
        self.certificates.add(listener, tls)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """A gateway has no cluster to register with: it only notes its endpoints."""
        self.endpoints.update(endpoints)

    async def reach(self) -> str:
        """Connect to the upstream; its cluster id. ClientError if that does not work."""
        cluster = self.upstream.cluster
        await cluster.retry("reach the upstream", lambda: cluster.refresh(()), FIRST_ANSWER_MAX_S)
        return cluster.map.cluster_id or "unknown"

    async def has_share_groups(self) -> bool:
        """Whether the upstream can serve queues: doors that take single messages need them."""
        cluster = self.upstream.cluster
        link = await cluster.link(next(iter(cluster.candidates())))
        try:
            link.version(SHARE_FETCH)
        except Unsupported:
            return False
        return True

    async def watch(self) -> None:
        """Look at the upstream again and again, in an endless loop; fails when another cluster is in its place."""
        is_there = True
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                await self.upstream.cluster.retry(
                    "reach the upstream", lambda: self.upstream.cluster.refresh(()), FIRST_ANSWER_MAX_S
                )
            except WrongCluster:
                raise
            except ClientError as error:
                if is_there:
                    logger.warning("%s; clients get errors until the upstream answers again", error)
                is_there = False
            else:
                if not is_there:
                    logger.info("the upstream answers again")
                is_there = True

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _own_endpoints(self, listener: str) -> Mapping[BrokerId, Address]:
        return {ITSELF: self.endpoints[listener]} if listener in self.endpoints else {}

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None and not self.failed.done():
            self.failed.set_exception(error)
            self.failed.exception()  # marks it as retrieved: `run` reports it
