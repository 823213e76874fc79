"""DescribeCluster: brokers, controller, cluster id, and endpoint types that are refused."""

from tailrace.wire.errors import Error
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest
from tests.unit.doors.kafka.served import Served, versions, with_broker


@with_broker(broker_rack="r1")
async def test_every_version_describes_the_cluster(served: Served) -> None:
    node = served.node
    for version in versions(60):
        answer = await served.call(DescribeClusterRequest(include_cluster_authorized_operations=True), version)
        assert (answer.error_code, answer.cluster_id) == (0, node.meta.cluster_id)
        assert answer.controller_id == node.broker_id
        (broker,) = answer.brokers
        assert (broker.broker_id, broker.host, broker.port) == (node.broker_id, "127.0.0.1", node.kafka_port)
        assert (broker.rack, broker.is_fenced) == ("r1", False)
        assert answer.cluster_authorized_operations == 0b1_1111_1010_0000
    plain = await served.call(DescribeClusterRequest(), 2)
    assert plain.cluster_authorized_operations == -(2**31)


@with_broker()
async def test_only_brokers_can_be_asked_for_here(served: Served) -> None:
    for kind, error in ((2, Error.MISMATCHED_ENDPOINT_TYPE), (3, Error.UNSUPPORTED_ENDPOINT_TYPE)):
        answer = await served.call(DescribeClusterRequest(endpoint_type=kind), 2)
        assert (answer.error_code, answer.brokers) == (error, ())
        assert answer.error_message
