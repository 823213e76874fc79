"""Dispatch of two events to the parts of a broker: metadata records were committed; a partition's leader changed."""

from collections.abc import Sequence
from typing import Any

from tailrace.broker.background import BackgroundTasks
from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.control.leader_duties import LeaderDuties
from tailrace.broker.coordination.coordinator import Coordinator
from tailrace.broker.lifecycle.registration import Registration
from tailrace.broker.metadata.hosted_partitions import HostedPartitions
from tailrace.broker.metadata.peer_addresses import PeerAddresses
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Peers
from tailrace.cluster.records import BrokerFenced, BrokerRegistered, FeatureRaised, PartitionWidened
from tailrace.model.ids import Id


class Reactions:
    def __init__(
        self,
        hosted: HostedPartitions,
        metadata: Partition,
        controller: ControllerRole,
        duties: LeaderDuties,
        peers: Peers,
        addresses: PeerAddresses,
        registration: Registration,
        coordinators: Sequence[Coordinator[Any]],
        background: BackgroundTasks,
    ) -> None:
        self._hosted = hosted
        self._metadata = metadata
        self._controller = controller
        self._duties = duties
        self._peers = peers
        self._addresses = addresses
        self._registration = registration
        self._coordinators = coordinators
        self._background = background
        self.is_live = False  # False during replay at the start: a record may be about a topic that is deleted later

    def committed(self, records: Sequence[object]) -> None:
        """Metadata records were committed."""
        self._hosted.committed(records)
        for record in records:
            self._addresses.heard(record)
            if self.is_live:
                self._registration.committed(record)
            if isinstance(record, BrokerRegistered | BrokerFenced):
                self._duties.brokers_changed()
            elif isinstance(record, PartitionWidened):
                self._duties.widened(Id(record.topic_id))
            elif isinstance(record, FeatureRaised):
                self._peers.level_raised()
        if self.is_live:
            self._addresses.keep_voters()
            for coordinator in self._coordinators:
                coordinator.committed(records)
            self._background.spawn(self._hosted.settle())

    def leader_changed(self, partition: Partition) -> None:
        """The role, the epoch or the leader of a hosted partition has changed."""
        if partition is self._metadata:
            self._controller.leader_changed()
            self._registration.update()
            return
        self._hosted.changed(partition.key.topic_id)
        self._duties.leader_changed(partition)
        for coordinator in self._coordinators:
            coordinator.leader_changed(partition)
