"""confluent-kafka and consumer groups: members, and what an administrator sees and does."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.interop.client import DEADLINE_S, Client
from tests.interop.drivers.confluent_refusals import only
from tests.interop.member import Member, in_python
from tests.interop.shapes import GroupShape


class ConfluentGroups(Client):
    _admin: AdminClient

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> Member:
        return Member(in_python("confluent"), self.bootstrap, topic, group, strategy, instance)

    def list_groups(self) -> dict[str, str]:
        found = self._admin.list_consumer_groups().result(DEADLINE_S)
        assert not found.errors
        return {one.group_id: one.state.name.title() for one in found.valid}

    def describe_group(self, group: str) -> GroupShape:
        found = only(self._admin.describe_consumer_groups([group]))
        clients = tuple(one.client_id for one in found.members)
        return GroupShape(state=found.state.name.title(), protocol=found.partition_assignor, clients=clients)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = only(self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]))
        return {one.partition: one.offset for one in found.topic_partitions if one.topic == topic}

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        done = only(self._admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)]))
        assert all(one.error is None for one in done.topic_partitions)

    def delete_group(self, group: str) -> None:
        only(self._admin.delete_consumer_groups([group]))
