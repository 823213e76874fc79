"""A member of a share group that takes records of one partition over a connection of its own; it is in no group, as
the leader does not ask for that."""

from typing import Any

from tailrace.client.connection import Connection
from tailrace.model.ids import Id
from tailrace.ports import system_ports
from tailrace.records.opened import batches, open_batch
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch, PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest
from tailrace.wire.messages.share_fetch import ShareFetchRequest
from tests.unit.doors.kafka.served import Served

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
GROUP_RESOURCE = 32
Batch = tuple[int, int, int]  # first offset, last offset, type


async def group_settings(served: Served, group: str = "g", **settings: str) -> None:
    changes = tuple(
        ConfigChange(name=name.replace("_", "."), config_operation=0, value=value) for name, value in settings.items()
    )
    resource = ResourceToAlter(resource_type=GROUP_RESOURCE, resource_name=group, configs=changes)
    answer = await served.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert answer.resources[0].error_code == 0, answer.resources[0].error_message


async def begin_at(served: Served, topic_id: bytes, start: int, group: str = "g", partition: int = 0) -> None:
    """Let a group begin to read a partition, as its coordinator does."""
    await served.node.coordinators.share_partitions.initialize(group, Id(topic_id), partition, 1, start)


class Taker:
    def __init__(self, client: Connection, topic_id: bytes, member: str, group: str) -> None:
        self.client = client
        self.topic_id = Id(topic_id)
        self.member = member
        self.group = group
        self.epoch = 0

    @classmethod
    async def connect(cls, served: Served, topic_id: bytes, member: str = "m", group: str = "g") -> "Taker":
        client = await Connection.connect(system_ports().net, "127.0.0.1", served.door.port)
        return cls(client, topic_id, member, group)

    async def fetch(self, *acknowledged: Batch, version: int = 2, **more: Any) -> Any:
        """ShareFetch; the whole answer."""
        partition = PartitionToAcknowledge(partition=0, acknowledgement_batches=_batches(acknowledged))
        topic = TopicToAcknowledge(topic_id=self.topic_id, partitions=(partition,))
        request = ShareFetchRequest(
            **{
                "group_id": self.group,
                "member_id": self.member,
                "share_session_epoch": self.epoch,
                "max_wait_ms": 0,
                "min_bytes": 1,
                "max_records": 500,
                "batch_size": 500,
                "topics": (topic,),
                **more,
            }
        )
        answer = await self.client.call(request, version)
        if answer.error_code == 0:
            self.epoch += 1
        return answer

    async def take(self, *acknowledged: Batch, **more: Any) -> list[Batch]:
        """The offsets that were acquired, with their delivery counts."""
        answer = await self.fetch(*acknowledged, **more)
        assert answer.error_code == 0, answer.error_message
        found = []
        for topic in answer.topics:
            for one in topic.partitions:
                assert (one.error_code, one.acknowledge_error_code) == (0, 0), (one.error_message, one)
                found += [(got.first_offset, got.last_offset, got.delivery_count) for got in one.acquired_records]
                spans = [(header.base_offset, header.last_offset) for _, header in batches(one.records)]
                for first, last, _ in found:
                    assert any(begin <= first and first <= end for begin, end in spans), "a range without its batch"
                    assert last <= spans[-1][1]
                for batch, _ in batches(one.records):
                    assert open_batch(batch)
        return found

    async def acknowledge(self, *acknowledged: Batch, version: int = 2, **more: Any) -> int:
        """ShareAcknowledge; the error of the request or of its partition."""
        partition = PartitionToAcknowledge(partition=0, acknowledgement_batches=_batches(acknowledged))
        topic = TopicToAcknowledge(topic_id=self.topic_id, partitions=(partition,))
        request = ShareAcknowledgeRequest(
            **{
                "group_id": self.group,
                "member_id": self.member,
                "share_session_epoch": self.epoch,
                "topics": (topic,),
                **more,
            }
        )
        answer = await self.client.call(request, version)
        if answer.error_code:
            return int(answer.error_code)
        self.epoch += 1
        return int(answer.topics[0].partitions[0].error_code)


def _batches(acknowledged: tuple[Batch, ...]) -> tuple[AcknowledgementBatch, ...]:
    return tuple(
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=(kind,))
        for first, last, kind in acknowledged
    )
