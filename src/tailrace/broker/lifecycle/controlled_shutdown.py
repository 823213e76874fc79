"""Controlled shutdown: a broker transfers leadership to other brokers before it stops, so that clients hardly notice.

First it hands over the partitions it leads, then it asks the controller to fence it, then it hands over the metadata
log, if it leads that. Every step has a time limit: a cluster that does not answer cannot keep a broker from stopping.
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
RECHECK_S: Final = 0.01


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
            logger.info(
                "controlled shutdown: the controller did not answer, it fences this broker after "
                "broker.session.timeout.ms: %s",
                error,
            )
        await self._hand_over(lambda: [self._metadata] if self._metadata.leads else [], LEAVE_WITHIN_S)

    async def _hand_over(self, led: Callable[[], Sequence[Partition]], within_s: float) -> None:
        """Transfer leadership of the partitions that `led` returns, until it returns none, none of them has a possible
        successor, or the time is up. A transfer is repeated if the successor has to catch up first."""
        deadline = self._clock.monotonic() + within_s
        while self._clock.monotonic() < deadline:
            waiting = False
            for partition in led():
                waiting |= partition.replica.hands_over or self._duties.hand_over(partition)
            if not waiting:
                return
            await asyncio.sleep(RECHECK_S)
