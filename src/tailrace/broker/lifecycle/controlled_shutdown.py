"""A controlled shutdown: leadership goes to other brokers first, so that clients hardly notice.

Partitions are handed over first, then the controller is told that this broker stops, then the metadata itself is handed
over. All of it within a bound: a cluster that does not answer does not keep a broker from stopping.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import Fault
from tailrace.model.ids import Id
from tailrace.model.settings import Settings
from tailrace.ports import Clock
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster

logger: Final = logging.getLogger(__name__)

HAND_OVER_WITHIN_S: Final = 5.0
LEAVE_WITHIN_S: Final = 2.0
LOOK_S: Final = 0.01


class ControlledShutdown:
    def __init__(
        self,
        hosted: HostedPartitions,
        metadata: Partition,
        duties: LeaderDuties,
        controller: ControllerCalls,
        incarnation: Id,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._hosted = hosted
        self._metadata = metadata
        self._duties = duties
        self._controller = controller
        self._incarnation = incarnation
        self._settings = settings
        self._clock = clock

    async def run(self) -> None:
        me = self._metadata.me.broker
        others = [broker for broker in self._hosted.image.live if broker != me]
        if not others or not self._settings.controlled_shutdown_enable:
            return
        await self._hand_over(lambda: [one for one in self._hosted.all() if one.leads], HAND_OVER_WITHIN_S)
        try:
            await self._controller.ask(LeaveCluster(broker_id=me, incarnation_id=self._incarnation), LEAVE_WITHIN_S)
        except (Fault, ConnectionError) as error:
            logger.info("the controller could not be told that this broker stops: %s", error)
        await self._hand_over(lambda: [self._metadata] if self._metadata.leads else [], LEAVE_WITHIN_S)

    async def _hand_over(self, led: Callable[[], Sequence[Partition]], within_s: float) -> None:
        """Ask successors to take over, repeatedly where they have to catch up first, while there is one to ask."""
        deadline = self._clock.monotonic() + within_s
        while self._clock.monotonic() < deadline:
            waiting = False
            for partition in led():
                waiting |= partition.replica.hands_over or self._duties.hand_over(partition)
            if not waiting:
                return
            await asyncio.sleep(LOOK_S)
