"""What a leader does beside leading: report that it leads and who keeps up, and give leadership back.

Reports go to the controller, many in one call, soon after an election and when the in-sync set has changed; what could
not be reported is tried again. A partition with one replica is not reported: nobody else can lead it.
Leadership goes back to the first replica in assignment order once that has caught up, a few partitions at a time.
A voter whose broker came back with another disk is replaced by the new one once that has caught up; a broker that is to
hold it, too, becomes a voter then.

Partitions at rest are not looked at, and there may be thousands: one whose followers all have all of it, and are heard
of, is let go until it *stirs*. It does when it grows, when a follower fetches anew, falls silent or leaves, when a
broker comes or goes.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.partitions.member import QuorumMember
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

REPORT_SOON_S: Final = 0.01
REPORT_AGAIN_S: Final = 0.25
REPORTS_PER_CALL_MAX: Final = 5_000
IN_SYNC_LOOK_S: Final = 3.0
HANDED_BACK_PER_TURN_MAX: Final = 100

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
        self._reported: dict[Partition, tuple[int, ...]] = {}  # in-sync sets of partitions led here
        self._stirred: dict[Partition, None] = {}  # of those, who has to be looked at
        self._wanted = asyncio.Event()

    def leader_changed(self, member: QuorumMember) -> None:
        assert isinstance(member, Partition)
        if member.leads and self._is_shared(member):
            self._report_soon(member)
        elif not member.leads:
            self._reported.pop(member, None)
        self.stirred(member)

    def stirred(self, member: QuorumMember) -> None:
        assert isinstance(member, Partition)
        member.at_rest = False
        if member.leads and self._is_shared(member):
            self._stirred[member] = None
            if member not in self._reported:  # it had one replica until now
                self._report_soon(member)
        else:
            self._stirred.pop(member, None)

    def brokers_changed(self) -> None:
        """One has come, gone, or got another disk."""
        for partition in self._hosted.all():
            if partition.at_rest:
                self.stirred(partition)

    def widened(self, topic_id: Id) -> None:
        """More brokers are to hold some of a topic's partitions."""
        for partition in self._hosted.of_topic(topic_id):
            self.stirred(partition)

    def _is_shared(self, partition: Partition) -> bool:
        place = self._hosted.image.place(*partition.key)
        return place is not None and len(place.replicas) > 1

    # Reports

    def _report_soon(self, partition: Partition) -> None:
        self._unreported[partition] = None
        self._wanted.set()

    async def report(self) -> None:
        """Report what is new, for ever."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(REPORT_SOON_S)  # more are elected in the same breath
            self._wanted.clear()
            some = dict.fromkeys(list(self._unreported)[:REPORTS_PER_CALL_MAX])
            for partition in some:
                del self._unreported[partition]
            try:
                await self._report(list(some))
            except (Fault, ConnectionError) as error:
                logger.debug("leaders could not be reported: %s", error)
                self._unreported = some | self._unreported
                await asyncio.sleep(REPORT_AGAIN_S)
            if self._unreported:
                self._wanted.set()

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
        """Report in-sync sets that have changed, and let go who is at rest, for ever."""
        while True:
            await asyncio.sleep(IN_SYNC_LOOK_S)
            for number, partition in enumerate(list(self._stirred), 1):
                self._look(partition)
                if number % PARTITIONS_PER_TURN_MAX == 0:
                    await asyncio.sleep(0)

    def _look(self, partition: Partition) -> None:
        told = self._reported.get(partition)
        if not partition.leads:
            self._stirred.pop(partition, None)
        elif told is not None and self._in_sync(partition) != told:
            self._report_soon(partition)
        elif told is not None and self._is_well(partition, told):
            partition.at_rest = True
            self._stirred.pop(partition, None)

    def _is_well(self, partition: Partition, in_sync: tuple[int, ...]) -> bool:
        """Whether nothing is left to be done, or waited for."""
        brokers, place = self._hosted.image.brokers, self._hosted.image.place(*partition.key)
        if place is None or not partition.replica.all_voters_caught_up(self._clock.monotonic()):
            return place is None
        if self._settings.auto_leader_rebalance_enable and place.replicas[0] != partition.me.broker:
            return False
        voters = partition.replica.voters
        disks = all(voter.broker in brokers and brokers[voter.broker].directory == voter.directory for voter in voters)
        return disks and sorted(in_sync) == sorted(place.replicas)

    # Leadership where it belongs

    async def give_back(self) -> None:
        """Hand leadership to preferred leaders that are back, and put new disks in old ones' place, for ever."""
        while True:
            await asyncio.sleep(self._settings.leader_imbalance_check_interval_seconds)
            given = 0
            for partition in list(self._stirred):
                place = self._hosted.image.place(*partition.key)
                if place is not None and len(place.replicas) > 1 and partition.leads:
                    self._look_at_disks(partition, place)
                    if self._settings.auto_leader_rebalance_enable and given < HANDED_BACK_PER_TURN_MAX:
                        given += self._give_back(partition, place)

    def _give_back(self, partition: Partition, place: PartitionPlace) -> bool:
        preferred = place.replicas[0]
        return _fetches(partition, preferred) and self.hand_over(partition, preferred)

    def _look_at_disks(self, partition: Partition, place: PartitionPlace) -> None:
        brokers = self._hosted.image.brokers
        voters = partition.replica.voters
        for voter in voters:
            if (known := brokers.get(voter.broker)) is not None and known.directory != voter.directory:
                partition.step(RemoveVoter(voter))
                return
        for broker in place.replicas:
            votes = broker in [voter.broker for voter in voters]
            if not votes and broker in brokers and _fetches(partition, broker):
                partition.step(AddVoter(Voter(broker=broker, directory=brokers[broker].directory)))
                return

    # Going away

    def hand_over(self, partition: Partition, to: BrokerId | None = None) -> bool:
        """Ask a successor to lead, a named one or any that keeps up, who fetches here now before all; is there one?"""
        now, live = self._clock.monotonic(), self._hosted.image.live
        there = [voter for voter in partition.replica.in_sync(now) if voter != partition.me and voter.broker in live]
        wanted = [voter for voter in there if to in (None, voter.broker)]
        if wanted:
            partition.step(Transfer(min(wanted, key=lambda voter: not _fetches(partition, voter.broker))))
        return bool(wanted)


def _fetches(partition: Partition, broker: BrokerId) -> bool:
    """Who does not may have died just now, and be in sync for a while yet: while we wait for it nothing is written."""
    return any(session.broker == broker for session in partition.sessions)
