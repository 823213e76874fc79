"""Kafka's requests and responses, one file per API; `MESSAGES` lists them by API key."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from tailrace.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tailrace.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from tailrace.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from tailrace.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from tailrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tailrace.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from tailrace.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tailrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from tailrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from tailrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from tailrace.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tailrace.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from tailrace.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from tailrace.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from tailrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from tailrace.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from tailrace.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from tailrace.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from tailrace.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from tailrace.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from tailrace.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from tailrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from tailrace.wire.messages.fetch import FetchRequest, FetchResponse
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tailrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tailrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tailrace.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from tailrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tailrace.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tailrace.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from tailrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tailrace.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from tailrace.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from tailrace.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from tailrace.wire.messages.produce import ProduceRequest, ProduceResponse
from tailrace.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tailrace.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tailrace.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from tailrace.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from tailrace.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tailrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tailrace.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from tailrace.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from tailrace.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tailrace.wire.schema import Versions, declaration


class Pair(NamedTuple):
    """The request and response of one API key."""

    key: int
    name: str
    request: type
    response: type

    @property
    def versions(self) -> Versions:
        return declaration(self.request).versions

    @property
    def flexible(self) -> Versions:
        return declaration(self.request).flexible


def _by_key(*pairs: tuple[type, type]) -> Mapping[int, Pair]:
    found: dict[int, Pair] = {}
    for request, response in pairs:
        key = declaration(request).number
        found[key] = Pair(key, request.__name__.removesuffix("Request"), request, response)
    return MappingProxyType(dict(sorted(found.items())))


MESSAGES: Final = _by_key(
    (ProduceRequest, ProduceResponse),
    (FetchRequest, FetchResponse),
    (ListOffsetsRequest, ListOffsetsResponse),
    (MetadataRequest, MetadataResponse),
    (OffsetCommitRequest, OffsetCommitResponse),
    (OffsetFetchRequest, OffsetFetchResponse),
    (FindCoordinatorRequest, FindCoordinatorResponse),
    (JoinGroupRequest, JoinGroupResponse),
    (HeartbeatRequest, HeartbeatResponse),
    (LeaveGroupRequest, LeaveGroupResponse),
    (SyncGroupRequest, SyncGroupResponse),
    (DescribeGroupsRequest, DescribeGroupsResponse),
    (ListGroupsRequest, ListGroupsResponse),
    (SaslHandshakeRequest, SaslHandshakeResponse),
    (ApiVersionsRequest, ApiVersionsResponse),
    (CreateTopicsRequest, CreateTopicsResponse),
    (DeleteTopicsRequest, DeleteTopicsResponse),
    (DeleteRecordsRequest, DeleteRecordsResponse),
    (InitProducerIdRequest, InitProducerIdResponse),
    (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    (EndTxnRequest, EndTxnResponse),
    (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    (DescribeConfigsRequest, DescribeConfigsResponse),
    (AlterConfigsRequest, AlterConfigsResponse),
    (DescribeLogDirsRequest, DescribeLogDirsResponse),
    (SaslAuthenticateRequest, SaslAuthenticateResponse),
    (CreatePartitionsRequest, CreatePartitionsResponse),
    (DeleteGroupsRequest, DeleteGroupsResponse),
    (ElectLeadersRequest, ElectLeadersResponse),
    (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    (OffsetDeleteRequest, OffsetDeleteResponse),
    (DescribeQuorumRequest, DescribeQuorumResponse),
    (UpdateFeaturesRequest, UpdateFeaturesResponse),
    (DescribeClusterRequest, DescribeClusterResponse),
    (DescribeProducersRequest, DescribeProducersResponse),
    (WriteTxnMarkersRequest, WriteTxnMarkersResponse),
    (DescribeTransactionsRequest, DescribeTransactionsResponse),
    (ListTransactionsRequest, ListTransactionsResponse),
    (ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    (ListConfigResourcesRequest, ListConfigResourcesResponse),
    (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    (ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse),
    (ShareGroupDescribeRequest, ShareGroupDescribeResponse),
    (ShareFetchRequest, ShareFetchResponse),
    (ShareAcknowledgeRequest, ShareAcknowledgeResponse),
    (DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse),
    (AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse),
    (DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse),
)
