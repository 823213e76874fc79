"""DescribeCluster: the brokers, the controller and the id of the cluster."""

from typing import Final

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.operations import allowed_on_cluster
from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse, DescribedBroker

brokers: Final = 1
controllers: Final = 2


async def describe_cluster(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    if request.endpoint_type != brokers:
        return _refused(request.endpoint_type)
    node = call.node
    me = DescribedBroker(
        broker_id=node.broker_id,
        host=node.advertised_host,
        port=node.kafka_port,
        rack=node.settings.broker_rack or None,
    )
    return DescribeClusterResponse(
        cluster_id=node.meta.cluster_id,
        controller_id=node.broker_id,
        brokers=(me,),
        cluster_authorized_operations=allowed_on_cluster(request.include_cluster_authorized_operations),
    )


def _refused(endpoint_type: int) -> DescribeClusterResponse:
    known = endpoint_type == controllers
    return DescribeClusterResponse(
        error_code=Error.MISMATCHED_ENDPOINT_TYPE if known else Error.UNSUPPORTED_ENDPOINT_TYPE,
        error_message=f"this is an endpoint of brokers (1); endpoints of type {endpoint_type} cannot be asked for here",
        endpoint_type=brokers,
        cluster_id="",
        brokers=(),
    )
