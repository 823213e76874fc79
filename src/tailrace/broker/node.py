"""A running broker: its parts, and how it stops. `starting` builds it; doors are attached to it.

`register` publishes the addresses of its listeners in the metadata. `stop` is a controlled shutdown: it hands
leadership over, leaves the cluster, and writes a checkpoint of all logs, so that the next start scans none.
"""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.certificates import Certificates
from tailrace.broker.control.cluster_changes import ClusterChanges
from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.control.producer_ids import ProducerIds
from tailrace.broker.control.topic_creation import TopicCreation
from tailrace.broker.coordination.coordinator import Coordinator
from tailrace.broker.groups.coordinator import GroupCoordinator
from tailrace.broker.lifecycle.checkpointing import Checkpointing
from tailrace.broker.lifecycle.controlled_shutdown import ControlledShutdown
from tailrace.broker.lifecycle.periodic import PeriodicTasks
from tailrace.broker.lifecycle.reactions import Reactions
from tailrace.broker.lifecycle.registration import Registration, RegistrationRefused
from tailrace.broker.metadata.follower import MetadataFollower
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.leaders import Leaders
from tailrace.broker.metadata.meta_file import MetaFile
from tailrace.broker.metadata.peer_addresses import PeerAddresses
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.partitions.read_ahead import ReadAhead
from tailrace.broker.queues.leader_calls import LeaderCalls
from tailrace.broker.queues.share_partitions import SharePartitions
from tailrace.broker.queues.state_calls import ShareStates
from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.broker.replication.quorums import Quorums
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.broker.services import Services
from tailrace.broker.transactions.coordinator import TransactionCoordinator
from tailrace.broker.transactions.marker_writing import MarkerWriting
from tailrace.model.addresses import Address
from tailrace.model.faults import StorageFailed
from tailrace.model.ids import NO_BROKER, BrokerId
from tailrace.model.listeners import KAFKA_LISTENER
from tailrace.model.settings import Settings
from tailrace.ports import Net, Ports, Tls
from tailrace.ports.disk import Lock
from tailrace.raft.voters import Voter


class CannotStart(Exception):
    """The broker cannot start; the message tells its operator why."""


class Control(NamedTuple):
    """The parts around the metadata log: following it, changing it, reporting to the controller."""

    hosted: HostedPartitions
    metadata: Partition  # the metadata log
    role: ControllerRole
    calls: ControllerCalls
    leaders: Leaders
    follower: MetadataFollower
    progress: MetadataProgress
    changes: ClusterChanges
    creation: TopicCreation
    duties: LeaderDuties
    producer_ids: ProducerIds


class Coordinators(NamedTuple):
    """The coordinators of this broker, the writer of their transaction markers, and the way to share coordinators and
    to the leaders of share partitions."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    markers: MarkerWriting
    shares: ShareCoordinator
    share_states: ShareStates
    share_partitions: SharePartitions
    leader_calls: LeaderCalls

    @property
    def all(self) -> tuple[Coordinator[Any], ...]:
        """Every coordinator; a new kind is added here."""
        return (self.groups, self.transactions, self.shares)


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    ports: Ports
    settings: Settings
    background: BackgroundTasks
    lock: Lock  # of the data directory
    certificates: Certificates
    meta: MetaFile
    votes: VoteJournal
    quorums: Quorums
    control: Control
    peer_addresses: PeerAddresses
    registration: Registration
    reactions: Reactions
    coordinators: Coordinators
    checkpointing: Checkpointing
    shutdown: ControlledShutdown
    periodic: PeriodicTasks
    read_ahead: ReadAhead
    services: Services

    def net(self, listener: str) -> Net:
        """The network as this listener uses it: plain, or with TLS."""
        return self.certificates.net(listener)

    def tls(self, listener: str) -> Tls | None:
        """The certificates of a listener that has sockets of its own; None if it is plain."""
        return self.certificates.tls(listener)

    def add_certificates(self, listener: str, tls: Tls) -> None:
        """Reload these with those of the other listeners."""
        self.certificates.add(listener, tls)

    @property
    def hosted(self) -> HostedPartitions:
        return self.control.hosted

    @property
    def metadata(self) -> Partition:
        """The metadata log."""
        return self.control.metadata

    async def register(self, endpoints: Mapping[str, Address]) -> None:
        """Register the addresses of this broker's listeners; returns when its own copy of the metadata has them."""
        try:
            await self.registration.register(endpoints)
        except RegistrationRefused as error:
            raise CannotStart(str(error)) from None
        self.spawn(self.control.producer_ids.stock_up())
        if self.hosted.settled.is_set():
            await self.hosted.settle()
        self.hosted.sweep()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in the background; if it fails, the broker fails."""
        self.background.spawn(work)

    def partitions(self) -> list[Partition]:
        """All partitions on this broker, the metadata log first."""
        return [self.metadata, *self.hosted.all()]

    @property
    def broker_id(self) -> BrokerId:
        return self.meta.broker_id

    @property
    def voter(self) -> Voter:
        return self.meta.voter

    @property
    def endpoints(self) -> Mapping[str, Address]:
        """The advertised addresses of this broker's listeners, by listener name, once it has registered."""
        return self.registration.endpoints

    @property
    def kafka_port(self) -> int:
        return self.endpoints[KAFKA_LISTENER].port

    @property
    def peer_port(self) -> int:
        return self.meta.meta.peer_port

    @property
    def advertised_host(self) -> str:
        return self.settings.host_for_clients

    @property
    def controller_id(self) -> BrokerId:
        return self.control.role.controller or NO_BROKER

    @property
    def is_controller(self) -> bool:
        return self.control.role.runtime is not None

    @property
    def is_sole_voter(self) -> bool:
        """Whether this broker is the only voter of the metadata log."""
        return self.metadata.replica.voters == (self.voter,)

    def leads_alone(self) -> bool:
        """Whether this broker leads every partition of which it is the only voter."""
        alone = [one for one in self.partitions() if one.replica.voters == (self.voter,) and one.offline is None]
        if self.metadata in alone and not self.is_controller:
            return False
        return all(one.leads or one.log.refusal is not None for one in alone)

    async def stop(self) -> None:
        """Hand over leadership, checkpoint all logs and release the data directory, even if the disk fails."""
        self.background.stopping = True
        await self.shutdown.run()
        self.hosted.resign()
        self.metadata.resign(StorageFailed("this broker is shutting down"))
        self.quorums.stop()
        await self.quorums.peers.close()  # from now on no peer makes this broker vote, truncate or append
        await self.background.cancelled()  # a periodic checkpoint must not overwrite the final one
        await self.checkpointing.checkpoint()
        await self.hosted.close()
        await self.metadata.log.close()
        await self.checkpointing.mark_clean(all_scanned=self.hosted.all_scanned)
        self.votes.close()
        self.lock.release()
        self.ports.offload.close()
