"""`tailrace.v1.Topics`: create, describe, change and delete topics."""

from typing import Any, Final

from tailrace.client import admin
from tailrace.client.faults import check
from tailrace.doors.grpc.calls import Call, Service
from tailrace.doors.grpc.schema import Schema
from tailrace.doors.grpc.statuses import BadField
from tailrace.doors.grpc.v1.records import checked_name
from tailrace.doors.upstream import Upstream
from tailrace.model.limits import GRPC_NAMES_PER_REQUEST_MAX
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig
from tailrace.wire.messages.metadata import TopicMetadata

DEFAULT: Final = -1  # of partitions or replicas: the broker's setting


class Topics:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1

    def service(self) -> Service:
        return Service(
            name="tailrace.v1.Topics",
            unary={
                "CreateTopic": self.create,
                "GetTopic": self.get,
                "ListTopics": self.list,
                "DeleteTopic": self.delete,
                "AddPartitions": self.add_partitions,
                "ChangeSettings": self.change_settings,
            },
            streaming={},
        )

    async def create(self, request: Any, call: Call) -> Any:
        name = checked_name(request.name, "name")
        for field in ("partitions", "replicas"):
            if getattr(request, field) < 0:
                raise BadField(field, f"{getattr(request, field)} is less than 0")
        if request.replicas > 2**15 - 1:
            raise BadField("replicas", f"{request.replicas} is too many")
        _check_few(len(request.settings), "settings")
        wanted = NewTopic(
            name=name,
            num_partitions=request.partitions or DEFAULT,
            replication_factor=request.replicas or DEFAULT,
            configs=tuple(NewTopicConfig(name=one, value=value) for one, value in sorted(request.settings.items())),
        )
        refused = (await admin.create_topics(self._upstream.cluster, [wanted]))[name]
        if refused is not None:
            raise refused
        return self._types.CreateTopicResponse()

    async def get(self, request: Any, call: Call) -> Any:
        name = checked_name(request.name, "name")
        topic = self._topic(await admin.describe_topic(self._upstream.cluster, name))
        for one in await admin.topic_settings(self._upstream.cluster, name):
            topic.settings[one.name] = one.value or ""
        return self._types.GetTopicResponse(topic=topic)

    async def list(self, request: Any, call: Call) -> Any:
        found = await admin.list_topics(self._upstream.cluster)
        shown = [one for one in found if request.internal or not one.is_internal]
        topics = [self._topic(one) for one in sorted(shown, key=lambda one: one.name or "")]
        return self._types.ListTopicsResponse(topics=topics)

    async def delete(self, request: Any, call: Call) -> Any:
        name = checked_name(request.name, "name")
        refused = (await admin.delete_topics(self._upstream.cluster, [name]))[name]
        if refused is not None:
            raise refused
        return self._types.DeleteTopicResponse()

    async def add_partitions(self, request: Any, call: Call) -> Any:
        name = checked_name(request.name, "name")
        if request.partitions < 1:
            raise BadField("partitions", f"{request.partitions} is less than 1")
        await admin.create_partitions(self._upstream.cluster, name, request.partitions)
        return self._types.AddPartitionsResponse()

    async def change_settings(self, request: Any, call: Call) -> Any:
        name = checked_name(request.name, "name")
        _check_few(len(request.changes), "changes")
        changes = {one.name: one.value if one.HasField("value") else None for one in request.changes}
        if not changes:
            raise BadField("changes", "there are none")
        await admin.change_topic_settings(self._upstream.cluster, name, changes)
        return self._types.ChangeSettingsResponse()

    def _topic(self, found: TopicMetadata) -> Any:
        check(found.error_code, f"describe topic {found.name}")
        partitions = [
            self._types.TopicPartition(
                partition=one.partition, leader=one.leader_id, replicas=one.replicas, in_sync=one.isr
            )
            for one in sorted(found.partitions, key=lambda one: one.partition)
        ]
        return self._types.Topic(name=found.name or "", internal=found.is_internal, partitions=partitions)


def _check_few(count: int, field: str) -> None:
    if count > GRPC_NAMES_PER_REQUEST_MAX:
        raise BadField(field, f"there are {count}, more than {GRPC_NAMES_PER_REQUEST_MAX}")
