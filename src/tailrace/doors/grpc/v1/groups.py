"""`tailrace.v1.Groups` and `tailrace.v1.Cluster`: what groups have committed, and which brokers there are."""

from typing import Any

from tailrace.client.group_admin import all_committed_offsets, delete_groups, list_groups
from tailrace.client.offsets import LATEST, commit_offsets, offsets_at
from tailrace.doors.grpc.calls import Call, Service
from tailrace.doors.grpc.schema import Schema
from tailrace.doors.grpc.statuses import BadField
from tailrace.doors.grpc.v1.records import checked_name, offsets_of
from tailrace.doors.upstream import Upstream
from tailrace.model.listeners import GRPC_LISTENER


class Groups:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1

    def service(self) -> Service:
        return Service(
            name="tailrace.v1.Groups",
            unary={
                "ListGroups": self.list,
                "GetOffsets": self.get_offsets,
                "SetOffsets": self.set_offsets,
                "DeleteGroup": self.delete,
            },
            streaming={},
        )

    async def list(self, request: Any, call: Call) -> Any:
        response = self._types.ListGroupsResponse()
        for one in await list_groups(self._upstream.cluster):
            response.groups.add(name=one.group_id, type=one.group_type or "classic", state=one.group_state)
        return response

    async def get_offsets(self, request: Any, call: Call) -> Any:
        cluster = self._upstream.cluster
        committed = await all_committed_offsets(cluster, checked_name(request.group, "group"))
        ends = await offsets_at(cluster, dict.fromkeys(committed, LATEST), committed=True)
        response = self._types.GetOffsetsResponse()
        for one, offset in committed.items():
            position = self._types.Position(topic=one.topic, partition=one.partition, offset=offset)
            response.offsets.add(position=position, lag=max(0, ends[one] - offset))
        return response

    async def set_offsets(self, request: Any, call: Call) -> Any:
        offsets = offsets_of(request.offsets, "offsets")
        if not offsets:
            raise BadField("offsets", "there are none")
        await commit_offsets(self._upstream.cluster, checked_name(request.group, "group"), offsets)
        return self._types.SetOffsetsResponse()

    async def delete(self, request: Any, call: Call) -> Any:
        name = checked_name(request.group, "group")
        refused = (await delete_groups(self._upstream.cluster, [name]))[name]
        if refused is not None:
            raise refused
        return self._types.DeleteGroupResponse()


class Brokers:
    def __init__(self, upstream: Upstream, schema: Schema) -> None:
        self._upstream = upstream
        self._types = schema.v1

    def service(self) -> Service:
        return Service(name="tailrace.v1.Cluster", unary={"DescribeCluster": self.describe}, streaming={})

    async def describe(self, request: Any, call: Call) -> Any:
        cluster = self._upstream.cluster
        await cluster.retry("describe the cluster", cluster.refresh)
        doors = await self._upstream.endpoints(GRPC_LISTENER)
        known = cluster.map
        response = self._types.DescribeClusterResponse(cluster_id=known.cluster_id or "", controller=known.controller)
        for broker, address in sorted(known.brokers.items()):
            door = str(doors[broker]) if broker in doors and self._upstream.broker_id is not None else ""
            response.brokers.add(id=broker, kafka=str(address), grpc=door)
        return response
