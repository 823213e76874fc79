"""The cluster: its brokers, their doors, and whether all partitions are in service."""

from typing import Any, Final

from tailrace.client.cluster import Cluster
from tailrace.doors.http.rest import names
from tailrace.doors.http.rest.operation import Answer, Call, Operation, Reply
from tailrace.doors.http.rest.schema import INT32_MAX, Many, Mapped, Object, Text, Whole
from tailrace.doors.http.rest.service import Service
from tailrace.model.listeners import DMQP_LISTENER, GRPC_LISTENER, HTTP_LISTENER
from tailrace.wire.messages.metadata import MetadataResponse

TAG: Final = "cluster"
DOORS: Final = (HTTP_LISTENER, GRPC_LISTENER, DMQP_LISTENER)
NAMED_MAX: Final = 100  # partitions that are not well in one answer; the numbers count all

BROKER: Final = Object(
    name="Broker",
    fields={
        "id": Whole(most=INT32_MAX),
        "host": Text(),
        "port": Whole(most=65_535),
        "rack": Text(nullable=True),
        "doors": Mapped(of=Text(), help="Where its other doors are open, as host:port."),
    },
)
CLUSTER: Final = Object(
    name="Cluster",
    fields={
        "id": Text(nullable=True),
        "controller": Whole(most=INT32_MAX, nullable=True),
        "broker": Whole(most=INT32_MAX, nullable=True, help="The broker that answers; null: a gateway."),
        "brokers": Many(of=BROKER),
    },
)
PARTITION_SEEN: Final = Object(fields={"topic": Text(), "partition": names.PARTITION})
HEALTH: Final = Object(
    name="Health",
    fields={
        "status": Text(
            choices=("green", "yellow", "red"), help="red: a partition has no leader; yellow: a replica lags."
        ),
        "brokers": Whole(most=INT32_MAX),
        "partitions": Whole(most=INT32_MAX),
        "offline": Whole(most=INT32_MAX, help="Partitions without a leader."),
        "under_replicated": Whole(most=INT32_MAX, help="Partitions with fewer replicas in sync than they have."),
        "named": Many(of=PARTITION_SEEN, help="The first of these.", most=NAMED_MAX),
    },
)


async def metadata(cluster: Cluster, *, with_topics: bool = False) -> MetadataResponse:
    async def ask() -> MetadataResponse:
        return await cluster.refresh(None if with_topics else ())

    return await cluster.retry("describe the cluster", ask)


async def describe(service: Service, call: Call) -> Reply:
    found = await metadata(service.cluster)
    doors = {name: await service.upstream.endpoints(name) for name in DOORS}
    brokers: list[dict[str, Any]] = []
    for one in sorted(found.brokers, key=lambda one: one.node_id):
        open_here = {name: str(at[one.node_id]) for name, at in doors.items() if one.node_id in at}  # type: ignore[index]
        brokers.append({"id": one.node_id, "host": one.host, "port": one.port, "rack": one.rack, "doors": open_here})
    controller = found.controller_id if found.controller_id >= 0 else None
    body = {"id": found.cluster_id, "controller": controller, "broker": service.upstream.broker_id, "brokers": brokers}
    return Reply(body=body)


async def health(service: Service, call: Call) -> Reply:
    found = await metadata(service.cluster, with_topics=True)
    partitions = [(topic.name, one) for topic in found.topics for one in topic.partitions]
    offline = [(name, one.partition) for name, one in partitions if one.leader_id < 0]
    lagging = [(name, one.partition) for name, one in partitions if len(one.isr) < len(one.replicas)]
    named = sorted(dict.fromkeys(offline + lagging), key=str)[:NAMED_MAX]
    body = {
        "status": "red" if offline else "yellow" if lagging else "green",
        "brokers": len(found.brokers),
        "partitions": len(partitions),
        "offline": len(offline),
        "under_replicated": len(lagging),
        "named": [{"topic": name, "partition": number} for name, number in named],
    }
    return Reply(body=body)


OPERATIONS: Final = (
    Operation(
        id="describeCluster",
        method="GET",
        path="/v1/cluster",
        tag=TAG,
        help="Describe the cluster: its brokers, and where their doors are open.",
        handler=describe,
        answers={200: Answer(help="The cluster.", shape=CLUSTER)},
    ),
    Operation(
        id="readHealth",
        method="GET",
        path="/v1/cluster/health",
        tag=TAG,
        help="Whether all partitions have a leader, and all their replicas.",
        more="The HTTP status is 200 also if they do not; it is 503 if no broker can answer.",
        handler=health,
        answers={200: Answer(help="The health of the cluster.", shape=HEALTH)},
    ),
)
