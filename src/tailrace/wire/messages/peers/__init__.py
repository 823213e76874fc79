"""What brokers say to each other on the peers' port; `PEER_MESSAGES` lists it by key, from 1000 on.

None of this is Kafka's, and clients never see it: it is not in `messages`. An answer has an error code, a sentence for
people, and with NOT_CONTROLLER a hint who is; all its fields have defaults, so that any call can be refused. Fetch
travels as Kafka declares it, and Raft's messages (`RAFT_MESSAGES_KEY`) are packed by hand and get no answer.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailrace.wire.messages import Pair
from tailrace.wire.messages.peers.call_share_coordinator import CallShareCoordinator, CallShareCoordinatorAnswer
from tailrace.wire.messages.peers.forward import Forward, ForwardAnswer
from tailrace.wire.messages.peers.hand_over import HandOver, HandOverAnswer
from tailrace.wire.messages.peers.hello import PeerHello, PeerHelloAnswer
from tailrace.wire.messages.peers.initialize_share_partition import (
    InitializeSharePartition,
    InitializeSharePartitionAnswer,
)
from tailrace.wire.messages.peers.join_cluster import JoinCluster, JoinClusterAnswer
from tailrace.wire.messages.peers.leave_cluster import LeaveCluster, LeaveClusterAnswer
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic, MakeInternalTopicAnswer
from tailrace.wire.messages.peers.move_start import MoveStart, MoveStartAnswer
from tailrace.wire.messages.peers.read_log_ends import ReadLogEnds, ReadLogEndsAnswer
from tailrace.wire.messages.peers.read_metadata_end import ReadMetadataEnd, ReadMetadataEndAnswer
from tailrace.wire.messages.peers.register_broker import RegisterBroker, RegisterBrokerAnswer
from tailrace.wire.messages.peers.report_leaders import ReportLeaders, ReportLeadersAnswer
from tailrace.wire.messages.peers.take_part import TakePart, TakePartAnswer
from tailrace.wire.messages.peers.take_producer_ids import TakeProducerIds, TakeProducerIdsAnswer
from tailrace.wire.messages.peers.write_markers import WriteMarkers, WriteMarkersAnswer
from tailrace.wire.schema import declaration

HELLO_KEY: Final = 1000
RAFT_MESSAGES_KEY: Final = 1001
JOIN_CLUSTER_KEY: Final = 1010


def _by_key(*pairs: tuple[type, type]) -> Mapping[int, Pair]:
    numbered = ((declaration(request).number, request, answer) for request, answer in pairs)
    return MappingProxyType({key: Pair(key, request.__name__, request, answer) for key, request, answer in numbered})


PEER_MESSAGES: Final = _by_key(
    (PeerHello, PeerHelloAnswer),
    (JoinCluster, JoinClusterAnswer),
    (RegisterBroker, RegisterBrokerAnswer),
    (LeaveCluster, LeaveClusterAnswer),
    (ReportLeaders, ReportLeadersAnswer),
    (TakeProducerIds, TakeProducerIdsAnswer),
    (MoveStart, MoveStartAnswer),
    (Forward, ForwardAnswer),
    (HandOver, HandOverAnswer),
    (MakeInternalTopic, MakeInternalTopicAnswer),
    (WriteMarkers, WriteMarkersAnswer),
    (TakePart, TakePartAnswer),
    (CallShareCoordinator, CallShareCoordinatorAnswer),
    (InitializeSharePartition, InitializeSharePartitionAnswer),
    (ReadLogEnds, ReadLogEndsAnswer),
    (ReadMetadataEnd, ReadMetadataEndAnswer),
)
