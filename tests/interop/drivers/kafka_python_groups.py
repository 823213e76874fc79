"""kafka-python and consumer groups: members, and what an administrator sees and does."""

from collections.abc import Mapping

import kafka.errors
from kafka import KafkaAdminClient, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.interop.client import Client, Refused
from tests.interop.member import Member, in_python
from tests.interop.shapes import GroupShape

NO_EPOCH = -1


class KafkaPythonGroups(Client):
    _admin: KafkaAdminClient

    def member(self, topic: str, group: str, strategy: str = "range", instance: str = "") -> Member:
        return Member(in_python("kafka_python"), self.bootstrap, topic, group, strategy, instance)

    def list_groups(self) -> dict[str, str]:
        return {one["group_id"]: one["group_state"] for one in self._admin.list_groups()}

    def describe_group(self, group: str) -> GroupShape:
        found = self._admin.describe_groups([group])[group]
        clients = tuple(one["client_id"] for one in found["members"])
        return GroupShape(state=found["group_state"], protocol=found["protocol_data"], clients=clients)

    def committed(self, group: str, topic: str) -> dict[int, int]:
        found = self._admin.list_group_offsets([group])[group]
        return {where.partition: one.offset for where, one in found.items() if where.topic == topic}

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        wanted = {TopicPartition(topic, one): OffsetAndMetadata(at, "", NO_EPOCH) for one, at in offsets.items()}
        done = self._admin.alter_group_offsets(group, wanted)
        assert all(error is kafka.errors.NoError for error in done.values())

    def delete_group(self, group: str) -> None:
        outcome = self._admin.delete_groups([group])[group]
        if outcome != "OK":
            raise Refused(getattr(kafka.errors, outcome).errno, outcome)
