"""A controlled shutdown: leadership goes to others first, so that clients hardly notice.

Partitions first, then the cluster is told that this broker goes, then the metadata itself is handed over. All of it
within a bound: a cluster that does not answer does not keep a broker from stopping.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import Fault
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster

if TYPE_CHECKING:
    from tailrace.broker.node import Node

logger: Final = logging.getLogger(__name__)

HAND_OVER_WITHIN_S: Final = 5.0
LEAVE_WITHIN_S: Final = 2.0
LOOK_S: Final = 0.01


async def shut_down_controlled(node: "Node") -> None:
    others = [broker for broker in node.brokers if broker != node.broker_id]
    if not others or not node.settings.controlled_shutdown_enable:
        return
    await _hand_over(node, lambda: [one for one in node.hosted.all() if one.leads], HAND_OVER_WITHIN_S)
    try:
        await node.calls.controller(
            LeaveCluster(broker_id=node.broker_id, incarnation_id=node.incarnation), LEAVE_WITHIN_S
        )
    except (Fault, ConnectionError) as error:
        logger.info("the cluster could not be told that this broker stops: %s", error)
    await _hand_over(node, lambda: [node.metadata] if node.metadata.leads else [], LEAVE_WITHIN_S)


async def _hand_over(node: "Node", led: Callable[[], Sequence[Partition]], within_s: float) -> None:
    """Ask successors to take over, again where they had to catch up first, until nobody is left who could."""
    clock = node.ports.clock
    deadline = clock.monotonic() + within_s
    while clock.monotonic() < deadline:
        waiting = False
        for partition in led():
            waiting |= partition.replica.hands_over or node.leader_duties.hand_over(partition)
        if not waiting:
            return
        await asyncio.sleep(LOOK_S)
