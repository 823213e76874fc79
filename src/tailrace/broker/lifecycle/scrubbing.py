"""Scrubbing of all partitions here, in the background: one log after the other, at a low rate (`log/scrub`).

Damage that nobody reads is found this way, while other replicas still have a good copy. The log is closed to appends
then, and what lies below the damage is served on; what follows is the same as for damage found by a read:

- A partition with several voters is repaired: this replica fetches everything from the leader again. A leader hands
  over first, before it declares the damage, so that clients hardly notice.
- A sole voter, and the metadata log, have nowhere to fetch from without a restart: file and position are named.

A pass begins with another partition each time, so that a broker that is restarted often comes to all of them.
"""

import asyncio
import logging
from typing import Final

from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.lifecycle.compacting import Throttled
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.log.scrub import Flaw, find_damage
from tailrace.ports import Ports

logger: Final = logging.getLogger(__name__)

FIRST_PASS_AFTER_S: Final = 60.0  # after a start, when there is much to do
HAND_OVER_WITHIN_S: Final = 5.0
RECHECK_S: Final = 0.05
SLEEP_MAX_S: Final = 60.0  # then the settings are looked at again: they may have changed


class Scrubbing:
    def __init__(self, hosted: HostedPartitions, metadata: Partition, duties: LeaderDuties, ports: Ports) -> None:
        self._hosted = hosted
        self._metadata = metadata
        self._duties = duties
        self._ports = ports

    async def run(self) -> None:
        """Scrub all partitions at each interval, in an endless loop."""
        clock = self._ports.clock
        due = clock.monotonic() + min(FIRST_PASS_AFTER_S, self._hosted.effective.log_scrub_interval_ms / 1000)
        while True:
            settings = self._hosted.effective
            if settings.log_scrub_enable and clock.monotonic() >= due:
                due = clock.monotonic() + settings.log_scrub_interval_ms / 1000
                await self.scrub_all()
            await asyncio.sleep(min(max(due - clock.monotonic(), RECHECK_S), SLEEP_MAX_S))

    async def scrub_all(self) -> None:
        """One pass over all partitions."""
        partitions = [self._metadata, *self._hosted.all()]
        first = self._ports.clock.wall_ms() // 1000 % len(partitions)
        for partition in partitions[first:] + partitions[:first]:
            log, member = partition.log, partition.member
            if log.damage is None and log.failed is None and partition.offline is None and not member.closed:
                await self._scrub(partition)

    async def _scrub(self, partition: Partition) -> None:
        throttle = Throttled(self._ports, self._hosted.effective.log_scrub_max_bytes_per_second)
        flaw = await find_damage(partition.log, throttle.moved)
        if flaw is not None:
            logger.error("%s: the scrub found damage: %s", partition.name, flaw)
            await self._hand_over(partition, flaw)
            if not flaw.segment.removed:
                partition.log.found_damage(flaw.segment, flaw.position, flaw.offset, flaw.reason)

    async def _hand_over(self, partition: Partition, flaw: Flaw) -> None:
        """Let another replica lead, if one can: this one has to refuse appends from then on."""
        clock = self._ports.clock
        deadline = clock.monotonic() + HAND_OVER_WITHIN_S
        while partition.leads and not flaw.segment.removed and clock.monotonic() < deadline:
            if not partition.replica.hands_over and not self._duties.hand_over(partition):
                return
            await asyncio.sleep(RECHECK_S)
