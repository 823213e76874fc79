"""The beginning of the share groups of a run: they get their settings, and at once their members may join.

Groups that begin while faults are injected do so when a leader of their topic does not hear from the controller, and
hears from everybody else: it is asked to let a group begin that it has no settings of.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.share_group import ShareGroup, configure
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation.network import Network

LATEST_SECONDS: Final = 6.0
CUT_MIN_SECONDS: Final = 0.5
CUT_MAX_SECONDS: Final = 3.0


class ShareOpening:
    def __init__(
        self, router: Router, network: Network, servers: Sequence[Server], groups: Sequence[ShareGroup], topic: str
    ) -> None:
        self.name = router.name
        self._router = router
        self._network = network
        self._servers = servers
        self._groups = groups
        self._topic = topic
        self.is_open = asyncio.Event()
        self.stopping = False

    async def open(self) -> None:
        for group in self._groups:
            await configure(self._router, group)
        self.is_open.set()

    async def run(self) -> None:
        rng = self._router.rng
        await asyncio.sleep(rng.random() * LATEST_SECONDS)
        lagging = self._leader_and_controller()
        if lagging is not None:
            self._network.cut(*lagging)
        await self.open()
        await asyncio.sleep(rng.uniform(CUT_MIN_SECONDS, CUT_MAX_SECONDS))
        if lagging is not None:
            self._network.heal(*lagging)

    def _leader_and_controller(self) -> tuple[str, str] | None:
        """A leader of the topic that is not the controller, and the controller."""
        controller: str | None = None
        leader: str | None = None
        for server in self._servers:
            if server.node is None or not server.serves:
                continue
            if server.node.control.role.runtime is not None:
                controller = server.name
            elif any(one.leads for one in server.node.hosted.of_topic(self._topic)):
                leader = server.name
        return None if controller is None or leader is None else (leader, controller)
