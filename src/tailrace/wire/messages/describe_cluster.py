"""DescribeCluster: the brokers, the controller and the id of the cluster.

A broker that joins the cluster also requests the peer addresses of the brokers, by tags of Tailrace's own (from 10,000
on) that other clients neither send nor receive.
"""

from tailrace.wire.messages.authorization import NOT_ASKED
from tailrace.wire.messages.response import ExplainedResponse
from tailrace.wire.schema import Int8, Int32, message, struct, wire


@message(api=60, versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """What the response shall include."""

    include_cluster_authorized_operations: bool = False
    endpoint_type: Int8 = wire(since=1, default=1)  # 1: brokers, 2: controllers
    include_fenced_brokers: bool = wire(since=2, default=False)
    peers: bool = wire(tag=10_000, since=2, default=False, ignorable=True)  # Tailrace's own: include peer addresses


@struct
class DescribedBroker:
    """A broker and its address."""

    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = wire(nullable="0+", default=None)
    is_fenced: bool = wire(since=2, default=False)
    peer_port: Int32 = wire(tag=10_000, since=2, default=-1, ignorable=True)  # Tailrace's own
    peer_host: str = wire(tag=10_001, since=2, default="", ignorable=True)


@message(api=60, versions="0-2", flexible="0+")
class DescribeClusterResponse(ExplainedResponse):
    """The cluster and its brokers."""

    endpoint_type: Int8 = wire(since=1, default=1)
    cluster_id: str
    controller_id: Int32 = -1
    brokers: tuple[DescribedBroker, ...]
    cluster_authorized_operations: Int32 = NOT_ASKED
