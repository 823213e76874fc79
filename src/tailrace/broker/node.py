"""A broker: one object that owns its ports, its partitions and its part in the cluster. Doors are attached to it.

Life: `start` takes the data directory, finds out which broker of which cluster this is (joining one if it was told to),
recovers the metadata log and folds what is committed of it, and opens its partitions, which take part in their quorums
from then on; `register` tells the cluster where clients find it. `stop` hands leadership over, leaves, and writes
everything down, so that the next start scans nothing. In between, `PeriodicTasks` does what time asks.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from tailrace.broker.control.calls import PeerCalls
from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.control.producer_ids import ProducerIds
from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.later_release import LaterRelease
from tailrace.broker.lifecycle.checkpointing import Checkpointing
from tailrace.broker.lifecycle.cluster_join import CannotJoin
from tailrace.broker.lifecycle.controlled_shutdown import shut_down_controlled
from tailrace.broker.lifecycle.identity import WrongDirectory, identify
from tailrace.broker.lifecycle.periodic import PeriodicTasks
from tailrace.broker.lifecycle.registration import Registration, RegistrationRefused
from tailrace.broker.machines.runtime import MachineRuntime
from tailrace.broker.metadata.follower import MetadataFollower
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.metadata.peer_addresses import PeerAddresses
from tailrace.broker.partitions.fetch_sessions import FetchSessions
from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import ReadAhead
from tailrace.broker.partitions.transaction_guards import Verifier
from tailrace.broker.peers import OwnLevels, Peers
from tailrace.broker.replication.quorums import Quorums
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.broker.transactions.coordinator import TransactionCoordinator
from tailrace.broker.transactions.marker_writing import MarkerWriting
from tailrace.cluster.brokers import KAFKA_LISTENER, Endpoints
from tailrace.cluster.controller import Controller
from tailrace.cluster.features import METADATA_VERSION, SUPPORTED_FEATURES, level_range
from tailrace.cluster.records import BrokerFenced, BrokerRegistered, FeatureRaised, PartitionWidened
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.log.directory.meta import exchange_boot_id, store_meta, take_clean_marker
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.addresses import Address
from tailrace.model.faults import NotController, StorageFailed
from tailrace.model.ids import NOBODY, BrokerId, Id, TopicPartition
from tailrace.model.settings import Settings
from tailrace.model.topics import METADATA_TOPIC, METADATA_TOPIC_ID, TopicSettings
from tailrace.ports import Disk, Ports
from tailrace.ports.disk import InUse, make_lasting_dir
from tailrace.raft.events import Campaign
from tailrace.raft.replica import Voter

logger: Final = logging.getLogger(__name__)

METADATA_PARTITION: Final = TopicPartition(METADATA_TOPIC_ID, 0)
LED_WITHIN_S: Final = 3.0
LOOK_S: Final = 0.005


class CannotStart(Exception):
    """Why a broker does not come up, in a sentence for the person who started it."""


class Node:
    def __init__(self, ports: Ports, settings: Settings) -> None:
        self.ports = ports
        self.settings = settings
        self.fetch_sessions = FetchSessions(ports.random, ports.clock)
        self.read_ahead = ReadAhead()
        self.calls = PeerCalls(self)
        self.kafka_port = settings.kafka_port  # the real one, once the door is open
        self.peer_port = 0  # likewise
        self.stopping = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.incarnation = ports.random.new_id()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self.registration = Registration(self)
        self.peer_addresses = PeerAddresses(self)
        self.group_coordinator = GroupCoordinator(self)
        self.marker_writing = MarkerWriting(self)
        self.transaction_coordinator = TransactionCoordinator(self)
        self.verifier: Verifier = self.transaction_coordinator.membership
        self.supported_features = SUPPORTED_FEATURES
        self._following = False  # the metadata, live

    # Starting

    async def start(self) -> None:
        disk, folder = self.ports.disk, self.settings.data_dir
        try:
            await make_lasting_dir(disk, folder)
            owner = f"process {self.ports.host.process_id()} (tailrace serve)"
            self._lock = disk.lock(f"{folder}/.lock", owner)
        except InUse as error:
            raise CannotStart(
                f"{folder} is in use by {error.owner}.\nStop it, or give this broker another place with --data-dir."
            ) from None
        except OSError as error:
            raise CannotStart(f"{folder} cannot be used: {error.strerror}.\nGive another with --data-dir.") from None
        try:
            await self._recover(disk, folder)
        except (OSError, StorageFailed, Unreadable) as error:
            await self._give_up()
            raise CannotStart(f"{folder} could not be recovered: {error}.") from error
        except (CannotStart, CannotJoin, WrongDirectory, LaterRelease) as error:
            await self._give_up()
            raise CannotStart(str(error)) from None
        self.periodic = PeriodicTasks(self)
        self.periodic.start()

    async def _give_up(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if hasattr(self, "quorums"):
            self.quorums.stop()
            await self.quorums.peers.close()
        self._lock.release()

    async def _recover(self, disk: Disk, folder: str) -> None:
        features = self.supported_features
        self.meta = await identify(self.ports, self.settings, self.incarnation, self.advertised_host, features)
        self.voter = Voter(broker=self.broker_id, directory=self.meta.directory_id)
        clean = await take_clean_marker(disk, folder)
        same_boot = await exchange_boot_id(disk, folder, self.ports.host.boot_id())
        if not clean and disk.exists(f"{folder}/votes"):
            logger.info("the last stop was not a clean one: what the checkpoint does not cover is scanned")
        self._votes = VoteJournal(disk, f"{folder}/votes")
        await self._votes.load()
        self.quorums = Quorums(
            self.ports, self.settings, self.voter, self._votes, self._find, self.spawn, self.calls.serve
        )
        levels = OwnLevels(supported=level_range(features, METADATA_VERSION), in_force=lambda: self.hosted.image.level)
        self.quorums.peers = Peers(self.ports, self.settings, self.voter, self.meta.cluster_id, self.quorums, levels)
        self.hosted = HostedPartitions(self.ports, self.settings, folder, self._votes, self.quorums)
        may_have_lost = self.settings.fsync != "always" and not clean and not same_boot
        self.hosted.may_not_vote.load()
        self.hosted.recovered(load_checkpoints(disk, folder), clean=clean, may_have_lost=may_have_lost)
        self.leaders = Leaders(self.hosted, self.broker_id, self.ports.clock)
        self.leader_duties = LeaderDuties(self.hosted, self.ports.clock, self.settings, self.calls.controller)
        self.producer_ids = ProducerIds(self.calls.controller, self.broker_id, self.spawn)
        await self._start_metadata()
        self.metadata.begin()  # what it may not do is written down by now
        await self._listen()
        self._start_quorums()
        await self._soon(lambda: self.metadata.leads or not self._is_sole_voter())
        if self._is_sole_voter() and not self.metadata.leads and self.quorums.vote_problem is not None:
            raise self.quorums.vote_problem  # nobody else could lead, and there would be no end to waiting
        await self._follower.catch_up()
        await self.hosted.settle()
        self._start_following()
        await self._soon(self._leads_alone)

    async def _listen(self) -> None:
        """Take the port for peers: the one that was asked for, else the one of the last life, else any."""
        wanted = self.settings.peer_port or self.meta.peer_port
        try:
            self.peer_port = await self.quorums.peers.listen(self.settings.host, wanted)
        except OSError as error:
            if self.settings.peer_port or not wanted:
                raise CannotStart(
                    f"port {wanted} on {self.settings.host}, for peers, cannot be had: {error.strerror or error}.\n"
                    "Give another with --peer-port (0 picks one)."
                ) from None
            self.peer_port = await self.quorums.peers.listen(self.settings.host, 0)
        if self.peer_port != self.meta.peer_port:
            self.meta = replace(self.meta, peer_port=self.peer_port)
            await store_meta(self.ports.disk, self.settings.data_dir, self.meta)

    async def _start_metadata(self) -> None:
        settings = TopicSettings.of({"retention.ms": "-1", "retention.bytes": "-1"}, self.settings)
        voters = tuple(Voter(voter.broker_id, voter.directory_id) for voter in self.meta.voters)
        self.metadata = await self.hosted.open(METADATA_TOPIC, METADATA_PARTITION, settings, voters)
        if self.metadata.log.damage is not None:
            raise CannotStart(f"the cluster's metadata is damaged: {self.metadata.log.damage}.")
        self.checkpointing = Checkpointing(self.ports, self.settings.data_dir, self.partitions)
        self.controller_role = ControllerRole(
            self.metadata, self.hosted.image, self.ports.clock, self.settings, self.spawn, self.supported_features
        )
        self.quorums.on_leader_changed = self._leader_changed
        self.quorums.on_stirred = self.leader_duties.stirred
        self.quorums.on_repaired = self.hosted.repaired
        self._follower = MetadataFollower(self.metadata, self._committed, self.supported_features)
        await self.peer_addresses.recall()

    def _start_quorums(self) -> None:
        if self._is_sole_voter() and METADATA_PARTITION not in self.hosted.may_not_vote:
            self.metadata.step(Campaign())
        self.quorums.opened(self.metadata)
        self.spawn(self.quorums.watch())

    def _start_following(self) -> None:
        self._following = True
        self.spawn(self._follower.follow())
        self.spawn(self.controller_role.watch())
        self.spawn(self.group_coordinator.forget_old())
        self.spawn(self.group_coordinator.keep_short())
        self.spawn(self.transaction_coordinator.forget_unused())
        self.spawn(self.transaction_coordinator.keep_short())
        self.spawn(self.leader_duties.report())
        self.spawn(self.leader_duties.watch_in_sync())
        self.spawn(self.leader_duties.give_back())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until this broker's own metadata fulfils a condition."""
        await self._follower.until(condition)

    async def _soon(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, not for ever: a disk that is full may have room later."""
        deadline = self.ports.clock.monotonic() + LED_WITHIN_S
        while not condition() and self.ports.clock.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)

    def _is_sole_voter(self) -> bool:
        return self.metadata.replica.voters == (self.voter,)

    def _leads_alone(self) -> bool:
        """Whether this broker leads what nobody else could: without a vote of others it takes one sync."""
        alone = [one for one in self.partitions() if one.replica.voters == (self.voter,) and one.offline is None]
        if self.metadata in alone and self.controller_role.runtime is None:
            return False
        return all(one.leads or one.log.refusal is not None for one in alone)

    async def register(self) -> None:
        """Tell the cluster where clients find this broker; done when this broker's own metadata says so."""
        try:
            await self.registration.register()
        except RegistrationRefused as error:
            raise CannotStart(str(error)) from None
        self.spawn(self.producer_ids.stock_up())
        await self.hosted.settle()
        self.hosted.sweep()

    # Following the cluster

    def _committed(self, records: Sequence[object]) -> None:
        self.hosted.committed(records)
        for record in records:
            self.peer_addresses.heard(record)
            if self._following:
                self.registration.committed(record)
            if isinstance(record, BrokerRegistered | BrokerFenced):
                self.leader_duties.brokers_changed()
            elif isinstance(record, PartitionWidened):
                self.leader_duties.widened(Id(record.topic_id))
            elif isinstance(record, FeatureRaised):
                self.quorums.peers.level_raised()
        if self._following:  # while it starts, a topic may be read of that was deleted later
            self.peer_addresses.keep_voters()
            self.group_coordinator.committed(records)
            self.spawn(self.hosted.settle())

    def _leader_changed(self, member: QuorumMember) -> None:
        if member is self.metadata:
            self.controller_role.leader_changed()
            self.registration.update()
        else:
            self.hosted.changed(member.key.topic_id)
            self.leader_duties.leader_changed(member)
            self.group_coordinator.leader_changed(member)
            self.transaction_coordinator.leader_changed(member)

    def _find(self, key: TopicPartition) -> QuorumMember | None:
        return self.metadata if key == METADATA_PARTITION else self.hosted.here(key)

    # Questions

    def partitions(self) -> list[Partition]:
        return [self.metadata, *self.hosted.all()]

    @property
    def broker_id(self) -> BrokerId:
        return self.meta.broker_id

    @property
    def brokers(self) -> Sequence[BrokerId]:
        """All brokers of the cluster that are there."""
        return self.hosted.image.live

    @property
    def controller_id(self) -> BrokerId:
        return self.controller_role.controller or NOBODY

    @property
    def is_controller(self) -> bool:
        return self.controller_role.runtime is not None

    @property
    def controller(self) -> MachineRuntime[Controller]:
        """The controller's own; `NotController` where another broker is it."""
        if self.metadata.offline is not None and self._is_sole_voter():
            raise StorageFailed(str(self.metadata.offline))  # it would lead no other either
        if self.controller_role.runtime is None:
            raise NotController("this broker is not the controller", self.controller_id)
        return self.controller_role.runtime

    @property
    def advertised_host(self) -> str:
        if self.settings.advertised_host:
            return self.settings.advertised_host
        return "127.0.0.1" if self.settings.host in ("0.0.0.0", "::") else self.settings.host

    @property
    def endpoints(self) -> Endpoints:
        """Where clients reach each listener of this broker, by the listener's name: what it registers."""
        return {KAFKA_LISTENER: Address(self.advertised_host, self.kafka_port)}

    async def settled(self) -> None:
        """Wait until this broker has done what is known to be committed now."""
        target = self.metadata.high_watermark
        await self._follower.until(lambda: self._follower.applied >= target)
        await self.hosted.settle()

    async def until_led(self, topic_ids: Sequence[Id], within_s: float = LED_WITHIN_S) -> None:
        """Wait until topics are known here, or gone, and all their partitions led; not for ever."""
        deadline = self.ports.clock.monotonic() + min(within_s, LED_WITHIN_S)
        image = self.hosted.image
        for topic_id in topic_ids:
            led = 0  # those before have been seen to be
            while topic_id not in image.removed and self.ports.clock.monotonic() < deadline:
                topic = image.topics_by_id.get(topic_id)
                if topic is not None and (led := self.leaders.first_unled(topic, led)) == len(topic.partitions):
                    break
                await asyncio.sleep(LOOK_S)

    # Work beside

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else; if it fails, the broker fails, loudly."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: "asyncio.Task[Any]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, LaterRelease):
                logger.critical("this broker stops: %s", error)
            else:
                logger.critical("a task of the broker failed", exc_info=error)
            if not self.failed.done():
                self.failed.set_exception(error)
                self.failed.exception()  # logged above: asyncio need not log it again if nobody awaits it

    async def checkpoint(self) -> None:
        await self.checkpointing.checkpoint()

    async def stop(self) -> None:
        """Hand over, write everything down and let go of the data directory, whatever the disk says."""
        self.stopping = True
        await shut_down_controlled(self)
        self.hosted.resign()
        self.metadata.resign(StorageFailed("this broker stops"))
        self.quorums.stop()
        await self.quorums.peers.close()  # from now on nobody makes us vote, cut or append
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)  # a checkpoint under way must not end after ours
        await self.checkpointing.checkpoint()
        await self.hosted.close()
        await self.metadata.log.close()
        await self.checkpointing.mark_clean()
        self._votes.close()
        self._lock.release()
        self.ports.offload.close()
