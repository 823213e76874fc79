"""DescribeCluster: the brokers, the controller and the cluster id.

With a tagged field of Tailrace's own, which joining brokers send, the response has the peer addresses of brokers, too.
"""

from typing import Final

from tailrace.cluster.brokers import Broker
from tailrace.doors.kafka.authorized_operations import allowed_on_cluster
from tailrace.doors.kafka.call import Call
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse, DescribedBroker

BROKERS: Final = 1
CONTROLLERS: Final = 2


async def describe_cluster(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        return _refused(request.endpoint_type)
    admin = call.services.admin
    cluster = admin.cluster(call.caller)
    shown = admin.brokers(call.caller, fenced=request.include_fenced_brokers)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller,
        brokers=tuple(_described(broker, peers=request.peers) for broker in shown),
        cluster_authorized_operations=allowed_on_cluster(request.include_cluster_authorized_operations),
    )


def _described(broker: Broker, *, peers: bool) -> DescribedBroker:
    return DescribedBroker(
        broker_id=broker.id,
        host=broker.host,
        port=broker.kafka_port,
        rack=broker.rack,
        is_fenced=broker.fenced,
        peer_host=broker.peer_host if peers else "",
        peer_port=broker.peer_port if peers else -1,
    )


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    known = endpoint_type == CONTROLLERS
    return DescribeClusterResponse(
        error_code=Error.MISMATCHED_ENDPOINT_TYPE if known else Error.UNSUPPORTED_ENDPOINT_TYPE,
        error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        if known
        else f"Unsupported endpoint type {endpoint_type}",
        endpoint_type=BROKERS,
        cluster_id="",
        brokers=(),
    )
