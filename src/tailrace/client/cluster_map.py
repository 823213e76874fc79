"""What a client knows of a cluster: its brokers, the topics, the leader of each partition, and coordinators.

It learns from Metadata responses, from hints in other responses (KIP-951), and from FindCoordinator. Brokers may lag
behind each other, so a leader of an earlier epoch never replaces that of a later one.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.client.faults import WrongCluster
from tailrace.model.addresses import Address
from tailrace.model.ids import NO_BROKER, NO_ID, BrokerId, Id, PartitionName
from tailrace.wire.errors import Error
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.metadata import MetadataResponse, TopicMetadata

UNKNOWN: Final = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)


class Leader(NamedTuple):
    broker: BrokerId
    epoch: int


class CoordinatorKey(NamedTuple):
    """What a coordinator is for: a group (kind 0) or a transactional id (kind 1)."""

    kind: int
    name: str


class ClusterMap:
    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.brokers: dict[BrokerId, Address] = {}
        self.controller = NO_BROKER
        self.topic_ids: dict[str, Id] = {}
        self.partition_counts: dict[str, int] = {}
        self.updated_at: dict[str, float] = {}  # by topic, when a broker last answered about it
        self._leaders: dict[PartitionName, Leader] = {}
        self._coordinators: dict[CoordinatorKey, Address] = {}

    def update(self, response: MetadataResponse) -> None:
        """Take what a broker says of the cluster; WrongCluster when it belongs to another."""
        if response.cluster_id is not None:
            if self.cluster_id not in (None, response.cluster_id):
                raise WrongCluster(f"a broker of cluster {response.cluster_id} answers, expected {self.cluster_id}")
            self.cluster_id = response.cluster_id
        if response.brokers:  # a broker that starts may not know any yet
            self.brokers = {BrokerId(one.node_id): Address(one.host, one.port) for one in response.brokers}
        self.controller = BrokerId(response.controller_id)
        for topic in response.topics:
            self._update_topic(topic)

    def note_update(self, response: MetadataResponse, now: float) -> None:
        names = [one.name for one in response.topics if one.name is not None]
        self.updated_at |= {name: now for name in names if self.has_topic(name)}

    def _update_topic(self, topic: TopicMetadata) -> None:
        if topic.name is None or topic.error_code not in (Error.NONE, *UNKNOWN):
            return
        if topic.error_code in UNKNOWN or topic.topic_id != self.topic_ids.get(topic.name, topic.topic_id):
            self._forget_topic(topic.name)  # epochs of a recreated topic begin anew
        if topic.error_code == Error.NONE:
            self.topic_ids[topic.name] = topic.topic_id
            self.partition_counts[topic.name] = len(topic.partitions)
            for one in topic.partitions:
                partition, leader = (
                    PartitionName(topic.name, one.partition),
                    Leader(BrokerId(one.leader_id), one.leader_epoch),
                )
                if topic.topic_id == NO_ID:
                    self._leaders[partition] = leader  # without ids, a recreated topic is not told from the old one
                else:
                    self._learn(partition, leader)

    def _forget_topic(self, name: str) -> None:
        self.topic_ids.pop(name, None)
        self.updated_at.pop(name, None)
        for number in range(self.partition_counts.pop(name, 0)):
            self._leaders.pop(PartitionName(name, number), None)

    def _learn(self, partition: PartitionName, leader: Leader) -> bool:
        known = self._leaders.get(partition)
        if known is not None and leader.epoch < known.epoch and leader.epoch >= 0:
            return False
        self._leaders[partition] = leader
        return known != leader

    def hint(self, partition: PartitionName, leader: LeaderIdAndEpoch, endpoints: Iterable[NodeEndpoint]) -> bool:
        """Take a response's hint of the current leader (KIP-951). Returns whether it is news: then retry at once."""
        if leader.leader_id < 0 or leader.leader_epoch < 0:
            return False
        for one in endpoints:
            self.brokers[BrokerId(one.node_id)] = Address(one.host, one.port)
        known = self._leaders.get(partition)
        if known is not None and leader.leader_epoch <= known.epoch:
            return False
        return self._learn(partition, Leader(BrokerId(leader.leader_id), leader.leader_epoch))

    def forget_leader(self, partition: PartitionName) -> None:
        """A broker says that it does not lead this partition, or does not answer: ask for metadata before the next
        request. The epoch is kept, so a broker that lags behind cannot bring back the leader of an earlier epoch."""
        known = self._leaders.get(partition)
        if known is not None:
            self._leaders[partition] = Leader(NO_BROKER, known.epoch)

    def leader(self, partition: PartitionName) -> Address | None:
        """The address of the leader; None if it is not known, or there is none."""
        known = self._leaders.get(partition)
        return None if known is None else self.brokers.get(known.broker)

    def leader_epoch(self, partition: PartitionName) -> int:
        known = self._leaders.get(partition)
        return -1 if known is None else known.epoch

    def has_topic(self, name: str) -> bool:
        return name in self.partition_counts

    def topic_id(self, name: str) -> Id:
        return self.topic_ids.get(name, NO_ID)

    def partitions(self, topic: str) -> list[PartitionName]:
        return [PartitionName(topic, number) for number in range(self.partition_counts.get(topic, 0))]

    # Coordinators

    def coordinator(self, key: CoordinatorKey) -> Address | None:
        return self._coordinators.get(key)

    def learn_coordinator(self, key: CoordinatorKey, address: Address) -> None:
        self._coordinators[key] = address

    def forget_coordinator(self, key: CoordinatorKey) -> None:
        self._coordinators.pop(key, None)

    def forget_all(self) -> None:
        """Forget all leaders and coordinators, but not the epochs of leaders."""
        for partition in self._leaders:
            self.forget_leader(partition)
        self._coordinators.clear()

    def forget_address(self, address: Address) -> None:
        """A broker does not answer: forget that it is a coordinator."""
        for key in [key for key, known in self._coordinators.items() if known == address]:
            del self._coordinators[key]
