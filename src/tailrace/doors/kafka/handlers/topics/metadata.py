"""Metadata: the brokers of the cluster, the controller, and the leaders of topics; may create missing topics.

The door's cache holds encoded topics, so the response is assembled from bytes: a response without topics is encoded as
usual, and the encoded topics replace its empty array.
"""

from collections.abc import Iterable
from typing import Final

from tailrace.doors.kafka.authorized_operations import allowed_on_cluster
from tailrace.doors.kafka.call import Call, Written
from tailrace.doors.kafka.handlers.topics.encoded_topics import encoded
from tailrace.doors.kafka.request_limits import require_few
from tailrace.model.faults import Fault, InvalidRequest, UnknownTopic, UnknownTopicId
from tailrace.model.ids import NO_ID, Id, show_id
from tailrace.model.topics import check_topic_name
from tailrace.wire.compile import encode, is_flexible
from tailrace.wire.faults import error_of
from tailrace.wire.messages.metadata import (
    BrokerMetadata,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
    TopicWanted,
)
from tailrace.wire.primitives import uvarint

FIRST_WITH_NULL_FOR_ALL: Final = 1
FIRST_BY_ID: Final = 12
FIRST_WITH_NULL_NAMES: Final = 12


async def metadata(request: MetadataRequest, call: Call) -> Written:
    wanted = request.topics
    if wanted is None or (call.version < FIRST_WITH_NULL_FOR_ALL and not wanted):
        topics = call.services.topics.all(call.caller).values()
        cache, operations = call.client.door.encoded_topics, request.include_topic_authorized_operations
        return _written(request, call, [cache.get(topic, call.version, operations) for topic in topics])
    require_few(len(wanted))
    refused = await _create_missing(request, call, wanted)
    once = dict.fromkeys((one.name, one.topic_id) for one in wanted)
    return _written(request, call, [_topic(request, call, name, topic_id, refused) for name, topic_id in once])


async def _create_missing(request: MetadataRequest, call: Call, wanted: Iterable[TopicWanted]) -> dict[str, Fault]:
    """Create the missing topics of a request, if that is allowed; returns the faults of those that could not be."""
    topics = call.services.topics
    if not (request.allow_auto_topic_creation and topics.may_be_created_on_demand):
        return {}
    existing = topics.all(call.caller)
    missing = {one.name: None for one in wanted if one.name is not None and one.topic_id == NO_ID}
    missing = {name: None for name in missing if name not in existing}
    return await topics.create_missing(call.caller, list(missing))


def _topic(request: MetadataRequest, call: Call, name: str | None, topic_id: Id, refused: dict[str, Fault]) -> bytes:
    find = call.services.topics.find
    by_id = name is None or topic_id != NO_ID
    topic = None
    if not by_id:
        topic = find(call.caller, name or "")
    elif call.version >= FIRST_BY_ID:
        topic = find(call.caller, topic_id)
    if topic is not None:
        operations = request.include_topic_authorized_operations
        return call.client.door.encoded_topics.get(topic, call.version, operations)
    fault = _why_by_id(call, topic_id) if by_id else refused.get(name or "") or _why_by_name(name or "")
    shown = None if by_id and call.version >= FIRST_WITH_NULL_NAMES else name or ""
    return encoded(TopicMetadata(error_code=error_of(fault), name=shown, topic_id=topic_id), call.version)


def _why_by_id(call: Call, topic_id: Id) -> Fault:
    if call.version < FIRST_BY_ID:
        return InvalidRequest(f"Metadata version {call.version} does not support topic ids")
    return UnknownTopicId(f"there is no topic with id {show_id(topic_id)}")


def _why_by_name(name: str) -> Fault:
    try:
        check_topic_name(name)
    except Fault as fault:
        return fault
    return UnknownTopic(f"there is no topic {name}")


def _written(request: MetadataRequest, call: Call, topics: list[bytes]) -> Written:
    admin = call.services.admin
    cluster = admin.cluster(call.caller)
    brokers = tuple(
        BrokerMetadata(node_id=one.id, host=one.host, port=one.kafka_port, rack=one.rack)
        for one in admin.brokers(call.caller)
    )
    empty = encode(
        MetadataResponse(
            brokers=brokers,
            cluster_id=cluster.cluster_id,
            controller_id=cluster.controller,
            topics=(),
            cluster_authorized_operations=allowed_on_cluster(request.include_cluster_authorized_operations),
        ),
        call.version,
    )
    return Written(with_topics(empty, topics, call.version))


def with_topics(empty: bytes, topics: list[bytes], version: int) -> bytes:
    """Insert encoded topics into an encoded response that has none."""
    flexible = is_flexible(MetadataResponse, version)
    none, count = (b"\x01", uvarint(len(topics) + 1)) if flexible else (bytes(4), len(topics).to_bytes(4, "big"))
    after = len(empty) - _bytes_after_topics(version, flexible)
    before = after - len(none)
    assert empty[before:after] == none
    return b"".join((empty[:before], count, *topics, empty[after:]))


def _bytes_after_topics(version: int, flexible: bool) -> int:
    operations = 4 if 8 <= version <= 10 else 0
    error_code = 2 if version >= 13 else 0
    return operations + error_code + flexible
