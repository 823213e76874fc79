"""The duties of a partition leader besides replication: report leader and ISR, rebalance leaders, adjust voters.

- Reports (leader, epoch, ISR) go to the controller, many in one call: soon after an election, and when the ISR has
  changed. A failed report is retried. A partition with one replica is not reported: no other broker can lead it.
- Leadership moves to the preferred leader (the first replica of the assignment) once that replica has caught up, a few
  partitions at a time.
- If a voter's broker came back with another disk, the old voter is removed, and the new disk becomes a voter once it
  has caught up. The same way, a broker that was added to the assignment becomes a voter.

There may be thousands of idle partitions, so they are not checked: a partition whose followers have all caught up and
keep fetching is *at rest*. It is checked again when it *stirs*: when it grows, when a follower starts to fetch, falls
silent or leaves, when a broker registers or is fenced.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.partition import Partition
from tailrace.cluster.image import PartitionPlace
from tailrace.model.faults import Fault
from tailrace.model.ids import BrokerId, Id
from tailrace.model.limits import PARTITIONS_PER_TURN_MAX
from tailrace.model.settings import Settings
from tailrace.ports import Clock
from tailrace.raft.events import AddVoter, RemoveVoter, Transfer
from tailrace.raft.replica import Voter
from tailrace.wire.messages.peers.report_leaders import LedPartition, ReportLeaders

logger: Final = logging.getLogger(__name__)

REPORT_DELAY_S: Final = 0.01
REPORT_RETRY_S: Final = 0.25
REPORTS_PER_CALL_MAX: Final = 5_000
IN_SYNC_CHECK_S: Final = 3.0
MOVED_PER_TURN_MAX: Final = 100

CallController = Callable[[object], Awaitable[Any]]


class LeaderDuties:
    def __init__(
        self, hosted: HostedPartitions, clock: Clock, settings: Settings, call_controller: CallController
    ) -> None:
        self._hosted = hosted
        self._clock = clock
        self._settings = settings
        self._call_controller = call_controller
        self._unreported: dict[Partition, None] = {}
        self._reported: dict[Partition, tuple[int, ...]] = {}  # the last reported ISR of each partition led here
        self._to_check: dict[Partition, None] = {}  # partitions led here that are not at rest
        self._report_wanted = asyncio.Event()

    def leader_changed(self, partition: Partition) -> None:
        if partition.leads and self._is_shared(partition):
            self._report_soon(partition)
        elif not partition.leads:
            self._reported.pop(partition, None)
        self.became_active(partition)

    def became_active(self, partition: Partition) -> None:
        """The partition is no longer at rest: check it, if this broker leads it."""
        partition.member.is_idle = False
        if partition.leads and self._is_shared(partition):
            self._to_check[partition] = None
            if partition not in self._reported:  # it had one replica until now
                self._report_soon(partition)
        else:
            self._to_check.pop(partition, None)

    def brokers_changed(self) -> None:
        """A broker has registered, perhaps with another disk, or was fenced."""
        for partition in self._hosted.all():
            if partition.member.is_idle:
                self.became_active(partition)

    def widened(self, topic_id: Id) -> None:
        """Replicas were added to partitions of a topic."""
        for partition in self._hosted.of_topic(topic_id):
            self.became_active(partition)

    def _is_shared(self, partition: Partition) -> bool:
        place = self._hosted.image.place(*partition.key)
        return place is not None and len(place.replicas) > 1

    # Reports

    def _report_soon(self, partition: Partition) -> None:
        self._unreported[partition] = None
        self._report_wanted.set()

    async def report(self) -> None:
        """Report new leaders and changed ISRs to the controller, in an endless loop."""
        while True:
            await self._report_wanted.wait()
            await asyncio.sleep(REPORT_DELAY_S)  # elections come in bursts: report them in one call
            self._report_wanted.clear()
            some = dict.fromkeys(list(self._unreported)[:REPORTS_PER_CALL_MAX])
            for partition in some:
                del self._unreported[partition]
            try:
                await self._report(list(some))
            except (Fault, ConnectionError) as error:
                logger.debug(
                    "reporting %d leaders to the controller failed, retrying in %g s: %s",
                    len(some),
                    REPORT_RETRY_S,
                    error,
                )
                self._unreported = some | self._unreported
                await asyncio.sleep(REPORT_RETRY_S)
            if self._unreported:
                self._report_wanted.set()

    async def _report(self, partitions: list[Partition]) -> None:
        led = [partition for partition in partitions if partition.leads]
        if not led:
            return
        in_sync = [self._in_sync(partition) for partition in led]
        rows = tuple(
            LedPartition(
                topic_id=partition.key.topic_id,
                partition=partition.key.partition,
                leader=partition.me.broker,
                epoch=partition.epoch,
                in_sync=brokers,
            )
            for partition, brokers in zip(led, in_sync, strict=True)
        )
        await self._call_controller(ReportLeaders(partitions=rows))
        self._reported.update(zip(led, in_sync, strict=True))

    def _in_sync(self, partition: Partition) -> tuple[int, ...]:
        return tuple(voter.broker for voter in partition.replica.in_sync(self._clock.monotonic()))

    async def watch_in_sync(self) -> None:
        """Report ISRs that have changed, and find partitions that are at rest, in an endless loop."""
        while True:
            await asyncio.sleep(IN_SYNC_CHECK_S)
            for number, partition in enumerate(list(self._to_check), 1):
                self._check(partition)
                if number % PARTITIONS_PER_TURN_MAX == 0:
                    await asyncio.sleep(0)

    def _check(self, partition: Partition) -> None:
        reported = self._reported.get(partition)
        if not partition.leads:
            self._to_check.pop(partition, None)
        elif reported is not None and self._in_sync(partition) != reported:
            self._report_soon(partition)
        elif reported is not None and self._is_settled(partition, reported):
            partition.member.is_idle = True
            self._to_check.pop(partition, None)

    def _is_settled(self, partition: Partition, in_sync: tuple[int, ...]) -> bool:
        """Whether every replica is a voter on its broker's current disk, caught up and in the ISR, and the leader is
        the preferred one (where leaders are rebalanced); also if the topic was deleted."""
        brokers, place = self._hosted.image.brokers, self._hosted.image.place(*partition.key)
        if place is None or not partition.replica.all_voters_caught_up(self._clock.monotonic()):
            return place is None
        if self._settings.auto_leader_rebalance_enable and place.replicas[0] != partition.me.broker:
            return False
        voters = partition.replica.voters
        disks = all(voter.broker in brokers and brokers[voter.broker].directory == voter.directory for voter in voters)
        return disks and sorted(in_sync) == sorted(place.replicas)

    # Preferred leaders and voters

    async def rebalance(self) -> None:
        """Move leadership to preferred leaders, and adjust voters to the assignment, in an endless loop."""
        while True:
            await asyncio.sleep(self._settings.leader_imbalance_check_interval_seconds)
            moved = 0
            for partition in list(self._to_check):
                place = self._hosted.image.place(*partition.key)
                if place is not None and len(place.replicas) > 1 and partition.leads:
                    self._adjust_voters(partition, place)
                    if self._settings.auto_leader_rebalance_enable and moved < MOVED_PER_TURN_MAX:
                        moved += self._move_to_preferred(partition, place)

    def _move_to_preferred(self, partition: Partition, place: PartitionPlace) -> bool:
        preferred = place.replicas[0]
        return _fetches(partition, preferred) and self.hand_over(partition, preferred)

    def _adjust_voters(self, partition: Partition, place: PartitionPlace) -> None:
        """Remove a voter whose broker has another disk now, or add one of the assignment. One change a turn."""
        brokers = self._hosted.image.brokers
        voters = partition.replica.voters
        for voter in voters:
            if (known := brokers.get(voter.broker)) is not None and known.directory != voter.directory:
                partition.member.step(RemoveVoter(voter))
                return
        for broker in place.replicas:
            votes = broker in [voter.broker for voter in voters]
            if not votes and broker in brokers and _fetches(partition, broker):
                partition.member.step(AddVoter(Voter(broker=broker, directory=brokers[broker].directory)))
                return

    # Leadership transfer

    def hand_over(self, partition: Partition, to: BrokerId | None = None) -> bool:
        """Start a transfer of leadership to a live replica of the ISR: to the named broker, or to any, preferably one
        that fetches now. False: there is no such replica."""
        now, live = self._clock.monotonic(), self._hosted.image.live
        in_sync = [voter for voter in partition.replica.in_sync(now) if voter != partition.me and voter.broker in live]
        successors = [voter for voter in in_sync if to in (None, voter.broker)]
        if successors:
            partition.member.step(Transfer(min(successors, key=lambda voter: not _fetches(partition, voter.broker))))
        return bool(successors)


def _fetches(partition: Partition, broker: BrokerId) -> bool:
    """Whether a broker fetches this partition now. One that does not may have died a moment ago, while it still counts
    as in sync; a transfer to it would block writes until the transfer times out."""
    return any(session.broker == broker for session in partition.member.sessions)
