"""Starting a broker: from a data directory and settings to a complete `Node`.

The order matters:
1. lock the data directory, and load or create the broker's identity (with --join, by joining a cluster);
2. load the state of the previous run: clean-shutdown marker, votes, checkpoints, replicas that may not vote;
3. open the metadata log, build the parts of the broker around it, and listen for other brokers;
4. take part in the quorum of the metadata log (a sole voter is elected at once), apply the committed metadata to the
   image, and open the partitions that are assigned to this broker;
5. follow the metadata log, and start the background tasks.

A start that fails cleans up: tasks are cancelled, connections closed, the lock released.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.certificates import Certificates
from tailrace.broker.control.cluster_changes import ClusterChanges
from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.control.peer_requests import ControllerRequests, LeaderHandOvers, PeerRequests
from tailrace.broker.control.preferred_elections import PreferredElections
from tailrace.broker.control.producer_ids import ProducerIds
from tailrace.broker.control.topic_creation import TopicCreation
from tailrace.broker.coordination.coordinator import CoordinatorParts
from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.groups.share_state_work import ShareStateCalls
from tailrace.broker.later_release import LaterRelease
from tailrace.broker.lifecycle.checkpointing import Checkpointing
from tailrace.broker.lifecycle.cluster_join import CannotJoin
from tailrace.broker.lifecycle.compacting import Compacting
from tailrace.broker.lifecycle.controlled_shutdown import ControlledShutdown
from tailrace.broker.lifecycle.identity import WrongDirectory, identify
from tailrace.broker.lifecycle.periodic import PeriodicTasks
from tailrace.broker.lifecycle.reactions import Reactions
from tailrace.broker.lifecycle.registration import OwnRegistration, Registration
from tailrace.broker.lifecycle.scrubbing import Scrubbing
from tailrace.broker.metadata.follower import MetadataFollower
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.metadata.meta_file import MetaFile
from tailrace.broker.metadata.peer_addresses import PeerAddresses
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.node import CannotStart, Control, Coordinators, Node
from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import ReadAhead
from tailrace.broker.peers import OwnLevels, Peers
from tailrace.broker.queues.dead_letters import DeadLetters
from tailrace.broker.queues.leader_calls import LeaderCalls
from tailrace.broker.queues.share_partitions import SharePartitions
from tailrace.broker.queues.state_calls import ShareStates
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.broker.replication.quorums import Quorums
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.broker.services import (
    Admin,
    ClusterNet,
    Groups,
    Queues,
    Reader,
    Services,
    ShareGroups,
    Topics,
    Transactions,
    Writer,
)
from tailrace.broker.transactions.coordinator import TransactionCoordinator
from tailrace.broker.transactions.marker_writing import MarkerWriting
from tailrace.broker.transactions.offset_commits import OffsetCommits
from tailrace.cluster.features import METADATA_VERSION, SUPPORTED_FEATURES, Features, level_range
from tailrace.log.directory.checkpoints import load_checkpoints
from tailrace.log.directory.meta import exchange_boot_id, take_clean_marker
from tailrace.log.directory.state_file import Unreadable
from tailrace.model.addresses import Address
from tailrace.model.faults import StorageFailed
from tailrace.model.ids import TopicPartition
from tailrace.model.listeners import KAFKA_LISTENER, PEER_LISTENER
from tailrace.model.settings import Settings
from tailrace.model.topics import METADATA_PARTITION, METADATA_TOPIC, TopicSettings
from tailrace.ports import BadCertificates, Ports
from tailrace.ports.disk import InUse, Lock, make_lasting_dir
from tailrace.raft.events import Campaign
from tailrace.raft.replica import Voter

if TYPE_CHECKING:
    from tailrace.client.producer import Producer

logger: Final = logging.getLogger(__name__)

LED_WITHIN_S: Final = 3.0
OPENED_WITHIN_S: Final = 0.5
RECHECK_S: Final = 0.005


async def start_broker(ports: Ports, settings: Settings) -> Node:
    """Start a broker; it runs, but is not registered yet. Raises `CannotStart`."""
    return await Startup(ports, settings).run()


class Startup:
    """One start of a broker. The public attributes show what it has opened so far."""

    def __init__(self, ports: Ports, settings: Settings, features: Features = SUPPORTED_FEATURES) -> None:
        self._ports = ports
        self._settings = settings
        self._features = features
        self.background = BackgroundTasks()
        self._incarnation = ports.random.new_id()
        self._requests = PeerRequests()
        self._quorums: Quorums | None = None
        self.voter: Voter | None = None  # once the identity of this broker is known
        self.metadata: Partition | None = None  # once the metadata log is open
        self.hosted: HostedPartitions | None = None

    def partitions(self) -> list[Partition]:
        """All open partitions, the metadata log first."""
        if self.metadata is None or self.hosted is None:
            return []
        return [self.metadata, *self.hosted.all()]

    async def run(self) -> Node:
        folder = self._settings.data_dir
        lock = await self._take_directory()
        try:
            return await self._start(lock)
        except (OSError, StorageFailed, Unreadable) as error:
            await self._give_up(lock)
            raise CannotStart(f"{folder} could not be recovered: {error}.") from error
        except (CannotStart, CannotJoin, WrongDirectory, LaterRelease, BadCertificates) as error:
            await self._give_up(lock)
            raise CannotStart(str(error)) from None

    async def _take_directory(self) -> Lock:
        disk, folder = self._ports.disk, self._settings.data_dir
        try:
            await make_lasting_dir(disk, folder)
            owner = f"process {self._ports.host.process_id()} (tailrace serve)"
            return disk.lock(f"{folder}/.lock", owner)
        except InUse as error:
            raise CannotStart(
                f"{folder} is in use by {error.owner}.\nStop it, or choose another directory with --data-dir."
            ) from None
        except OSError as error:
            raise CannotStart(
                f"{folder} cannot be used: {error.strerror}.\nChoose another directory with --data-dir."
            ) from None

    async def _give_up(self, lock: Lock) -> None:
        self.background.cancel()
        if self._quorums is not None:
            self._quorums.stop()
            await self._quorums.peers.close()
        lock.release()

    async def _start(self, lock: Lock) -> Node:
        ports, settings = self._ports, self._settings
        certificates = Certificates(ports, settings)
        host = settings.host_for_clients
        found = await identify(ports, settings, certificates, self._incarnation, host, self._features)
        meta = MetaFile(ports.disk, settings.data_dir, found)
        self.voter = meta.voter
        votes, quorums, hosted = await self._load(meta, replace(ports, net=certificates.net(PEER_LISTENER)))
        metadata = self.metadata = await self._open_metadata(meta, hosted)
        quorums.find = partial(_member_of, hosted, metadata)
        node = self._build(meta, votes, quorums, hosted, metadata, certificates, lock)
        await node.peer_addresses.recall()
        metadata.member.begin()  # the list of replicas that may not vote is on disk by now
        await self._listen(meta, quorums.peers)
        await self._come_up(node)
        node.periodic.start()
        return node

    async def _load(self, meta: MetaFile, peer_ports: Ports) -> tuple[VoteJournal, Quorums, HostedPartitions]:
        """Load the state of the previous run, and find out whether it ended cleanly."""
        ports, settings, disk, folder = self._ports, self._settings, self._ports.disk, self._settings.data_dir
        clean = await take_clean_marker(disk, folder)
        same_boot = await exchange_boot_id(disk, folder, ports.host.boot_id())
        if not clean and disk.exists(f"{folder}/votes"):
            logger.info("the last shutdown was not clean: scanning the logs from their recovery points on")
        votes = VoteJournal(disk, f"{folder}/votes")
        await votes.load()

        def connect(quorums: Quorums) -> Peers:
            levels = OwnLevels(
                supported=level_range(self._features, METADATA_VERSION), in_force=lambda: hosted.image.level
            )
            return Peers(peer_ports, settings, meta.voter, meta.cluster_id, quorums, self._requests.serve, levels)

        quorums = self._quorums = Quorums(ports, settings, meta.voter, votes, self.background.spawn, connect)
        hosted = self.hosted = HostedPartitions(ports, settings, folder, votes, quorums)
        may_have_lost = settings.fsync != "always" and not clean and not same_boot
        hosted.may_not_vote.load()
        hosted.recovered(load_checkpoints(disk, folder), clean=clean, may_have_lost=may_have_lost)
        return votes, quorums, hosted

    async def _open_metadata(self, meta: MetaFile, hosted: HostedPartitions) -> Partition:
        settings = TopicSettings.of({"retention.ms": "-1", "retention.bytes": "-1"}, self._settings)
        voters = tuple(Voter(voter.broker_id, voter.directory_id) for voter in meta.meta.voters)
        metadata = await hosted.open(METADATA_TOPIC, METADATA_PARTITION, settings, voters)
        if metadata.log.damage is not None:
            raise CannotStart(f"the metadata log is damaged: {metadata.log.damage}.")
        return metadata

    def _build(
        self,
        meta: MetaFile,
        votes: VoteJournal,
        quorums: Quorums,
        hosted: HostedPartitions,
        metadata: Partition,
        certificates: Certificates,
        lock: Lock,
    ) -> Node:
        """Create all parts of the broker and connect them. Nothing runs yet."""
        ports, settings, clock, background = self._ports, self._settings, self._ports.clock, self.background
        peers, own_address = quorums.peers, partial(_peer_address, settings, meta)
        control = self._build_control(meta, peers, hosted, metadata)
        cluster_net = ClusterNet(
            certificates.net(KAFKA_LISTENER), peers, hosted, meta.broker_id, lambda: registration.endpoints
        )
        dead_letters = DeadLetters(partial(self._dead_letter_producer, cluster_net), clock)
        coordinators = self._build_coordinators(control, peers, dead_letters)
        addresses = PeerAddresses(meta, peers, metadata, hosted.image, own_address, background.spawn)
        requests = ControllerRequests(control.role, metadata, addresses.of, meta.cluster_id, ports.random.new_id)
        hand_overs = LeaderHandOvers(hosted, control.duties, peers.call, clock)
        own = OwnRegistration(
            voter=meta.voter,
            incarnation=self._incarnation,
            peer_address=own_address,
            rack=settings.broker_rack or None,
            features=self._features,
        )
        registration = Registration(own, metadata, hosted.image, control.progress, control.calls, peers, background)
        reactions = Reactions(
            hosted, metadata, control.role, control.duties, peers, addresses, registration, coordinators.all, background
        )
        coordinated = coordinators.markers, coordinators.transactions.membership, coordinators.shares
        for served in (requests, hand_overs, *coordinated, coordinators.leader_calls):
            self._requests.add(served.handlers)
        _wire(control, reactions)
        checkpointing = Checkpointing(ports, settings.data_dir, self.partitions, hosted.unopened, hosted.scan_cost)
        read_ahead = ReadAhead()
        return Node(
            ports=ports,
            settings=settings,
            background=background,
            lock=lock,
            certificates=certificates,
            meta=meta,
            votes=votes,
            quorums=quorums,
            control=control,
            peer_addresses=addresses,
            registration=registration,
            reactions=reactions,
            coordinators=coordinators,
            checkpointing=checkpointing,
            shutdown=ControlledShutdown(
                hosted, metadata, control.duties, control.calls, self._incarnation, settings, clock
            ),
            periodic=PeriodicTasks(hosted, metadata, checkpointing, clock, settings, background.spawn),
            read_ahead=read_ahead,
            services=self._build_services(
                meta, control, coordinators, requests, hand_overs, read_ahead, registration, cluster_net
            ),
        )

    def _build_control(self, meta: MetaFile, peers: Peers, hosted: HostedPartitions, metadata: Partition) -> Control:
        settings, clock, spawn = self._settings, self._ports.clock, self.background.spawn
        role = ControllerRole(metadata, hosted.image, clock, settings, spawn, self._features)
        calls = ControllerCalls(role, metadata, peers.call, self._requests.serve, clock)
        leaders = Leaders(hosted, meta.broker_id, clock)
        follower = MetadataFollower(metadata, self._features)
        progress = MetadataProgress(metadata, follower, hosted, leaders, clock)
        changes = ClusterChanges(role, progress)
        return Control(
            hosted=hosted,
            metadata=metadata,
            role=role,
            calls=calls,
            leaders=leaders,
            follower=follower,
            progress=progress,
            changes=changes,
            creation=TopicCreation(changes, calls, progress, self._ports.random.new_id),
            duties=LeaderDuties(hosted, clock, settings, calls.ask),
            producer_ids=ProducerIds(calls.ask, meta.broker_id, spawn),
        )

    def _build_coordinators(self, control: Control, peers: Peers, dead_letters: DeadLetters) -> Coordinators:
        parts = CoordinatorParts(
            hosted=control.hosted,
            leaders=control.leaders,
            controller=control.calls,
            topics=control.creation,
            ports=self._ports,
            settings=self._settings,
            background=self.background,
        )
        markers = MarkerWriting(control.hosted, self._incarnation, peers.call)
        transactions = TransactionCoordinator(parts, control.producer_ids, markers, peers)
        shares = ShareCoordinator(parts)
        share_states = ShareStates(shares, control.hosted.me.broker, peers.call, self._ports.clock, self.background)
        share_partitions = SharePartitions(
            control.hosted,
            share_states,
            self._settings,
            self._ports.clock,
            self.background.spawn,
            dead_letters,
            control.progress.until_applied,
        )
        leader_calls = LeaderCalls(control.hosted, control.leaders, peers.call, share_partitions.initialize)
        share_calls = ShareStateCalls(control.calls.metadata_end, leader_calls.initialize, share_states.delete_all)
        return Coordinators(
            groups=GroupCoordinator(parts, share_calls),
            transactions=transactions,
            markers=markers,
            shares=shares,
            share_states=share_states,
            share_partitions=share_partitions,
            leader_calls=leader_calls,
        )

    def _build_services(
        self,
        meta: MetaFile,
        control: Control,
        coordinators: Coordinators,
        requests: ControllerRequests,
        hand_overs: LeaderHandOvers,
        read_ahead: ReadAhead,
        registration: Registration,
        cluster_net: ClusterNet,
    ) -> Services:
        ports, settings, clock, hosted = self._ports, self._settings, self._ports.clock, control.hosted
        calls, leaders, progress, me = control.calls, control.leaders, control.progress, meta.broker_id
        changes = control.changes
        elections = PreferredElections(hosted, leaders, clock, hand_overs.ask)
        groups = Groups(coordinators.groups, hosted, ports, settings.offset_metadata_max_bytes)
        verifier = coordinators.transactions.membership
        return Services(
            topics=Topics(hosted, leaders, progress, changes, control.creation, settings, me),
            writer=Writer(hosted, verifier, calls, progress, ports.offload),
            reader=Reader(hosted, read_ahead, clock, settings.fetch_partition_max_bytes),
            groups=groups,
            queues=Queues(coordinators.shares, coordinators.share_partitions, clock),
            share_groups=ShareGroups(
                coordinators.groups, coordinators.shares, coordinators.share_states, coordinators.leader_calls, hosted
            ),
            transactions=Transactions(
                coordinators.transactions,
                coordinators.groups,
                groups,
                OffsetCommits(coordinators.groups, verifier),
                coordinators.markers,
                control.producer_ids,
                hosted,
                clock,
            ),
            admin=Admin(
                hosted,
                control.metadata,
                control.role,
                changes,
                progress,
                elections,
                calls,
                requests,
                ports,
                settings,
                self._features,
                lambda: registration.endpoints,
                meta.cluster_id,
                me,
            ),
            cluster_net=cluster_net,
        )

    def _dead_letter_producer(self, net: ClusterNet) -> "Producer":
        """A producer within this broker; its modules are imported when the first dead letter is written."""
        from tailrace.client.asyncio_driver import AsyncioDriver
        from tailrace.client.cluster import Cluster
        from tailrace.client.producer import Producer, ProducerOptions

        driver = AsyncioDriver(net, self._ports.clock, self._ports.random, "dead-letters")
        return Producer(Cluster(driver, [net.own_address()]), ProducerOptions(creates_topics=False))

    async def _listen(self, meta: MetaFile, peers: Peers) -> None:
        """Bind the peer port: the one in the settings, else the one of the previous run, else any free port."""
        settings = self._settings
        wanted = settings.peer_port or meta.meta.peer_port
        try:
            port = await peers.listen(settings.host, wanted)
        except OSError as error:
            if settings.peer_port or not wanted:
                raise CannotStart(
                    f"cannot bind the peer port {wanted} on {settings.host}: {error.strerror or error}.\n"
                    "Choose another with --peer-port (0 picks a free one)."
                ) from None
            port = await peers.listen(settings.host, 0)
        if port != meta.meta.peer_port:
            meta.change(peer_port=port)
            await meta.store()

    async def _come_up(self, node: Node) -> None:
        """Take part in the quorums, follow the metadata log, and start the background tasks."""
        metadata, quorums, spawn = node.metadata, node.quorums, self.background.spawn
        if node.is_sole_voter and METADATA_PARTITION not in node.hosted.may_not_vote:
            metadata.member.step(Campaign())
        quorums.opened(metadata.member)
        spawn(quorums.watch())
        await self._soon(lambda: metadata.leads or not node.is_sole_voter)
        if node.is_sole_voter and not metadata.leads and quorums.vote_problem is not None:
            raise quorums.vote_problem  # no other broker could lead, so waiting would not help
        await node.control.follower.catch_up()
        spawn(node.hosted.settle())
        await self._opened(node)
        node.reactions.is_live = True
        spawn(node.control.follower.follow())
        spawn(node.control.role.watch())
        for coordinator in node.coordinators.all:
            for work in coordinator.background_work():
                spawn(work)
        spawn(node.certificates.watch())
        spawn(Scrubbing(node.hosted, metadata, node.control.duties, self._ports).run())
        spawn(Compacting(node.hosted, self._ports).run())
        spawn(node.control.duties.report())
        spawn(node.control.duties.watch_in_sync())
        spawn(node.control.duties.rebalance())
        await self._soon(lambda: node.leads_alone() or not node.hosted.settled.is_set())

    async def _opened(self, node: Node) -> None:
        """Wait until the partitions are open, but not longer than `OPENED_WITHIN_S`: those that are open are served
        while the others are scanned."""
        try:
            async with asyncio.timeout(OPENED_WITHIN_S):
                await node.hosted.settled.wait()
        except TimeoutError:
            logger.info("scanning the logs takes longer; the partitions scanned so far are served meanwhile")

    async def _soon(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, but not longer than `LED_WITHIN_S`: a full disk delays an election until it has room,
        and must not keep the broker from starting."""
        clock = self._ports.clock
        deadline = clock.monotonic() + LED_WITHIN_S
        while not condition() and clock.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(RECHECK_S)


def _member_of(hosted: HostedPartitions, metadata: Partition, key: TopicPartition) -> QuorumMember | None:
    partition = metadata if key == METADATA_PARTITION else hosted.here(key)
    return None if partition is None else partition.member


def _wire(control: Control, reactions: Reactions) -> None:
    """Connect events to the parts that handle them."""
    control.hosted.leader_changed = reactions.leader_changed
    control.hosted.became_active = control.duties.became_active
    control.follower.on_committed = reactions.committed


def _peer_address(settings: Settings, meta: MetaFile) -> Address:
    return Address(settings.host_for_clients, settings.advertised_peer_port or meta.meta.peer_port)
