"""DescribeQuorum: the leader, voters and observers of the metadata log, with their log end offsets.

Only the leader, the controller, can answer; other brokers forward the request. Times are by the leader's wall clock. A
replica that has not fetched since this leader was elected has no log end offset and no times (-1).
"""

from tailrace.broker.services.admin import QuorumView, ReplicaView
from tailrace.cluster.brokers import Broker
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import partitions_once
from tailrace.model.faults import Fault, UnknownTopic
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.topics import METADATA_TOPIC
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    QuorumNode,
    QuorumOfPartition,
    QuorumsOfTopic,
    ReplicaProgress,
)
from tailrace.wire.primitives import WireError


async def describe_quorum(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    try:
        quorum = await call.services.admin.quorum(call.caller)
    except Fault as fault:
        return DescribeQuorumResponse(error_code=Error.NOT_LEADER_OR_FOLLOWER, error_message=str(fault))
    asked = ((one.name, [each.partition for each in one.partitions]) for one in request.topics)
    try:
        named = partitions_once(asked, PARTITIONS_PER_REQUEST_MAX)
    except WireError as error:  # do not close the connection: for a forwarded request it is the peer's
        return DescribeQuorumResponse(error_code=Error.INVALID_REQUEST, error_message=str(error))
    shown = _metadata_quorum(quorum)
    topics = tuple(
        QuorumsOfTopic(
            name=name,
            partitions=tuple(
                shown if (name, number) == (METADATA_TOPIC, 0) else _refused(name, number) for number in numbers
            ),
        )
        for name, numbers in named.items()
    )
    return DescribeQuorumResponse(topics=topics, nodes=tuple(_node(one) for one in quorum.brokers))


def _refused(topic: str, partition: int) -> QuorumOfPartition:
    fault = UnknownTopic(f"only the quorum of {METADATA_TOPIC}-0 can be described, not {topic}-{partition}")
    return QuorumOfPartition(partition=partition, error_code=error_of(fault), error_message=str(fault))


def _metadata_quorum(quorum: QuorumView) -> QuorumOfPartition:
    return QuorumOfPartition(
        partition=0,
        leader_id=quorum.leader,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=tuple(_progress(one) for one in quorum.voters),
        observers=tuple(_progress(one) for one in quorum.observers),
    )


def _progress(replica: ReplicaView) -> ReplicaProgress:
    return ReplicaProgress(
        replica_id=replica.broker,
        replica_directory_id=replica.directory,
        log_end_offset=replica.log_end,
        last_fetch_timestamp_ms=replica.last_fetch_ms,
        last_caught_up_timestamp_ms=replica.last_caught_up_ms,
    )


def _node(broker: Broker) -> QuorumNode:
    """A voter's addresses, for clients and for other brokers."""
    return QuorumNode(
        node_id=broker.id,
        listeners=(
            Listener(name="PLAINTEXT", host=broker.host, port=broker.kafka_port),
            Listener(name="PEERS", host=broker.peer_host, port=broker.peer_port),
        ),
    )
