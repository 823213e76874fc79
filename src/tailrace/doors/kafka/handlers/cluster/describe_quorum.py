"""DescribeQuorum: who votes on the cluster's metadata, who only listens, and how far each of them is.

Only its leader, the controller, knows; any other broker passes the request on. Times are by the leader's wall clock. A
replica that has not fetched since this leader was elected has no log end and no times yet.
"""

from typing import TYPE_CHECKING, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import partitions_once
from tailrace.model.faults import Fault, UnknownTopic
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.topics import METADATA_TOPIC
from tailrace.ports import Clock
from tailrace.raft.tracking import PeerProgress
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

if TYPE_CHECKING:
    from tailrace.broker.node import Node

UNKNOWN: Final = -1
NEVER: Final = float("-inf")


async def describe_quorum(request: DescribeQuorumRequest, call: Call) -> DescribeQuorumResponse:
    try:
        await call.node.controller.settled()  # it leads still, by the word of a majority
    except Fault as fault:
        return DescribeQuorumResponse(error_code=Error.NOT_LEADER_OR_FOLLOWER, error_message=str(fault))
    asked = ((one.name, [each.partition for each in one.partitions]) for one in request.topics)
    try:
        named = partitions_once(asked, PARTITIONS_PER_REQUEST_MAX)
    except WireError as error:  # it may have come over a peer's connection, which is not the client's to lose
        return DescribeQuorumResponse(error_code=Error.INVALID_REQUEST, error_message=str(error))
    quorum = _metadata_quorum(call.node)
    topics = tuple(
        QuorumsOfTopic(
            name=name,
            partitions=tuple(
                quorum if (name, number) == (METADATA_TOPIC, 0) else _refused(name, number) for number in numbers
            ),
        )
        for name, numbers in named.items()
    )
    return DescribeQuorumResponse(topics=topics, nodes=_nodes(call.node))


def _refused(topic: str, partition: int) -> QuorumOfPartition:
    fault = UnknownTopic(f"only the quorum of {METADATA_TOPIC}, partition 0, is described, not {topic}-{partition}")
    return QuorumOfPartition(partition=partition, error_code=error_of(fault), error_message=str(fault))


def _metadata_quorum(node: "Node") -> QuorumOfPartition:
    partition, clock = node.metadata, node.ports.clock
    peers = {peer.replica: peer for peer in partition.replica.peers()}
    observers = sorted((peer for peer in peers.values() if not peer.votes), key=lambda peer: peer.replica)
    return QuorumOfPartition(
        partition=0,
        leader_id=node.broker_id,
        leader_epoch=partition.epoch,
        high_watermark=partition.high_watermark,
        current_voters=tuple(
            _leader(partition, clock) if voter == partition.me else _progress(peers[voter], clock)
            for voter in partition.replica.voters
        ),
        observers=tuple(_progress(peer, clock) for peer in observers),
    )


def _leader(partition: Partition, clock: Clock) -> ReplicaProgress:
    now_ms = clock.wall_ms()
    return ReplicaProgress(
        replica_id=partition.me.broker,
        replica_directory_id=partition.me.directory,
        log_end_offset=partition.log.end,
        last_fetch_timestamp_ms=now_ms,
        last_caught_up_timestamp_ms=now_ms,
    )


def _progress(peer: PeerProgress, clock: Clock) -> ReplicaProgress:
    fetched = peer.end >= 0
    return ReplicaProgress(
        replica_id=peer.replica.broker,
        replica_directory_id=peer.replica.directory,
        log_end_offset=peer.end,
        last_fetch_timestamp_ms=_wall_ms(peer.fetched, clock) if fetched else UNKNOWN,
        last_caught_up_timestamp_ms=_wall_ms(peer.caught_up, clock) if fetched else UNKNOWN,
    )


def _wall_ms(at: float, clock: Clock) -> int:
    """When something happened that was noted by the monotonic clock."""
    return UNKNOWN if at == NEVER else clock.wall_ms() - round((clock.monotonic() - at) * 1000)


def _nodes(node: "Node") -> tuple[QuorumNode, ...]:
    """Where the voters are found: by clients, and by their peers."""
    brokers = node.hosted.image.brokers
    known = [brokers[voter.broker] for voter in node.metadata.replica.voters if voter.broker in brokers]
    return tuple(
        QuorumNode(
            node_id=one.id,
            listeners=(
                Listener(name="PLAINTEXT", host=one.host, port=one.kafka_port),
                Listener(name="PEERS", host=one.peer_host, port=one.peer_port),
            ),
        )
        for one in known
    )
