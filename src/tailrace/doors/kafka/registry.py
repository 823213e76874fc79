"""The APIs and versions that the Kafka door supports, one line per API. ApiVersions returns this table.

The version ranges are those of Kafka 4.3: clients infer the broker's version from them.
Hot APIs decode the request and encode the response themselves; all others get a decoded request and return a response,
in a task, or without one if they are `Deferred`.
"""

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any, Final

from tailrace.doors.kafka.call import Answer, Call, Deferred, WireCall
from tailrace.doors.kafka.handlers.cluster.api_versions import api_versions
from tailrace.doors.kafka.handlers.cluster.describe_cluster import describe_cluster
from tailrace.doors.kafka.handlers.cluster.describe_log_dirs import describe_log_dirs
from tailrace.doors.kafka.handlers.cluster.describe_quorum import describe_quorum
from tailrace.doors.kafka.handlers.cluster.elect_leaders import elect_leaders
from tailrace.doors.kafka.handlers.cluster.find_coordinator import find_coordinator
from tailrace.doors.kafka.handlers.cluster.update_features import update_features
from tailrace.doors.kafka.handlers.configs.alter_configs import alter_configs
from tailrace.doors.kafka.handlers.configs.describe_configs import describe_configs
from tailrace.doors.kafka.handlers.configs.incremental_alter_configs import incremental_alter_configs
from tailrace.doors.kafka.handlers.configs.list_config_resources import list_config_resources
from tailrace.doors.kafka.handlers.groups.alter_share_group_offsets import alter_share_group_offsets
from tailrace.doors.kafka.handlers.groups.consumer_group_describe import consumer_group_describe
from tailrace.doors.kafka.handlers.groups.consumer_group_heartbeat import consumer_group_heartbeat
from tailrace.doors.kafka.handlers.groups.delete_groups import delete_groups
from tailrace.doors.kafka.handlers.groups.delete_share_group_offsets import delete_share_group_offsets
from tailrace.doors.kafka.handlers.groups.describe_groups import describe_groups
from tailrace.doors.kafka.handlers.groups.describe_share_group_offsets import describe_share_group_offsets
from tailrace.doors.kafka.handlers.groups.heartbeat import heartbeat
from tailrace.doors.kafka.handlers.groups.join_group import join_group
from tailrace.doors.kafka.handlers.groups.leave_group import leave_group
from tailrace.doors.kafka.handlers.groups.list_groups import list_groups
from tailrace.doors.kafka.handlers.groups.offset_commit import OFFSET_COMMIT
from tailrace.doors.kafka.handlers.groups.offset_delete import offset_delete
from tailrace.doors.kafka.handlers.groups.offset_fetch import offset_fetch
from tailrace.doors.kafka.handlers.groups.share_group_describe import share_group_describe
from tailrace.doors.kafka.handlers.groups.share_group_heartbeat import share_group_heartbeat
from tailrace.doors.kafka.handlers.groups.sync_group import sync_group
from tailrace.doors.kafka.handlers.queues.share_acknowledge import share_acknowledge
from tailrace.doors.kafka.handlers.queues.share_fetch import share_fetch
from tailrace.doors.kafka.handlers.records.delete_records import delete_records
from tailrace.doors.kafka.handlers.records.describe_producers import describe_producers
from tailrace.doors.kafka.handlers.records.fetch import fetch
from tailrace.doors.kafka.handlers.records.list_offsets import list_offsets
from tailrace.doors.kafka.handlers.records.offset_for_leader_epoch import offset_for_leader_epoch
from tailrace.doors.kafka.handlers.records.produce import produce
from tailrace.doors.kafka.handlers.topics.create_partitions import create_partitions
from tailrace.doors.kafka.handlers.topics.create_topics import create_topics
from tailrace.doors.kafka.handlers.topics.delete_topics import delete_topics
from tailrace.doors.kafka.handlers.topics.describe_topic_partitions import describe_topic_partitions
from tailrace.doors.kafka.handlers.topics.metadata import metadata
from tailrace.doors.kafka.handlers.transactions.add_offsets_to_txn import add_offsets_to_txn
from tailrace.doors.kafka.handlers.transactions.add_partitions_to_txn import add_partitions_to_txn
from tailrace.doors.kafka.handlers.transactions.describe_transactions import describe_transactions
from tailrace.doors.kafka.handlers.transactions.end_txn import end_txn
from tailrace.doors.kafka.handlers.transactions.init_producer_id import init_producer_id
from tailrace.doors.kafka.handlers.transactions.list_transactions import list_transactions
from tailrace.doors.kafka.handlers.transactions.txn_offset_commit import txn_offset_commit
from tailrace.doors.kafka.handlers.transactions.write_txn_markers import write_txn_markers
from tailrace.model.frozen import frozen
from tailrace.model.limits import REQUEST_ELEMENTS_BY_NAME_MAX, REQUEST_ELEMENTS_MAX
from tailrace.wire.messages import MESSAGES
from tailrace.wire.schema import Versions, declaration

Handler = Callable[[Any, Call], Awaitable[Any]]
HotHandler = Callable[[WireCall], Answer | None]


@frozen
class Api:
    key: int
    name: str
    versions: Versions
    flexible_since: int
    request: type | None = None
    handler: Handler | None = None
    hot: HotHandler | None = None
    deferred: Deferred | None = None
    pipelined: bool = False  # several requests of a connection may wait for their responses at once
    by_controller: bool = False  # other brokers forward it to the controller
    bulky: bool = False  # may be as large as socket.request.max.bytes
    elements_max: int = REQUEST_ELEMENTS_MAX  # in its arrays


def _api(key: int, handler: Handler | Deferred, *, by_controller: bool = False, by_name: bool = False) -> Api:
    one = MESSAGES[key]
    declared = declaration(one.request)
    return Api(
        key=key,
        name=one.name,
        versions=declared.versions,
        flexible_since=declared.flexible.first,
        request=one.request,
        handler=None if isinstance(handler, Deferred) else handler,
        deferred=handler if isinstance(handler, Deferred) else None,
        by_controller=by_controller,
        elements_max=REQUEST_ELEMENTS_BY_NAME_MAX if by_name else REQUEST_ELEMENTS_MAX,
    )


_TABLE: Final = (
    # Produce 0 to 2 are listed, but refused: without them older librdkafka does not compress.
    Api(key=0, name="Produce", versions=Versions(0, 13), flexible_since=9, hot=produce, pipelined=True, bulky=True),
    Api(key=1, name="Fetch", versions=Versions(4, 18), flexible_since=12, hot=fetch),
    _api(2, list_offsets, by_name=True),
    _api(3, metadata, by_name=True),
    _api(8, OFFSET_COMMIT, by_name=True),
    _api(9, offset_fetch, by_name=True),
    _api(10, find_coordinator, by_name=True),
    _api(11, join_group),
    _api(12, heartbeat),
    _api(13, leave_group),
    _api(14, sync_group),
    _api(15, describe_groups, by_name=True),
    _api(16, list_groups),
    _api(18, api_versions),
    _api(19, create_topics, by_controller=True),
    _api(20, delete_topics, by_controller=True),
    _api(21, delete_records),
    _api(22, init_producer_id),
    _api(23, offset_for_leader_epoch, by_name=True),
    _api(24, add_partitions_to_txn),
    _api(25, add_offsets_to_txn),
    _api(26, end_txn),
    _api(27, write_txn_markers),
    _api(28, txn_offset_commit, by_name=True),
    _api(32, describe_configs),
    _api(33, alter_configs, by_controller=True),
    _api(35, describe_log_dirs),
    _api(37, create_partitions, by_controller=True),
    _api(42, delete_groups, by_name=True),
    _api(43, elect_leaders),
    _api(44, incremental_alter_configs, by_controller=True),
    _api(47, offset_delete, by_name=True),
    _api(55, describe_quorum, by_controller=True),
    _api(57, update_features, by_controller=True),
    _api(60, describe_cluster),
    _api(61, describe_producers),
    _api(65, describe_transactions, by_name=True),
    _api(66, list_transactions),
    _api(68, consumer_group_heartbeat),
    _api(69, consumer_group_describe, by_name=True),
    _api(74, list_config_resources),
    _api(75, describe_topic_partitions),
    _api(76, share_group_heartbeat),
    _api(77, share_group_describe, by_name=True),
    _api(78, share_fetch),
    _api(79, share_acknowledge),
    _api(90, describe_share_group_offsets, by_name=True),
    _api(91, alter_share_group_offsets, by_name=True),
    _api(92, delete_share_group_offsets, by_name=True),
)

BETWEEN_BROKERS: Final = range(1000, 2000)  # API keys of requests between brokers: `wire.messages.peers`

APIS: Final = MappingProxyType({api.key: api for api in _TABLE})
FLEXIBLE_SINCE: Final = MappingProxyType({api.key: api.flexible_since for api in _TABLE})


def unknown(key: int) -> str:
    """Why a request with an API key that is not in the table is refused."""
    if key in BETWEEN_BROKERS:
        return f"API key {key} is for requests between brokers, on the peer port only"
    return f"unknown API key {key}"
