"""ShareAcknowledge: acknowledge records of a share group without taking more (KIP-932)."""

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.queues.acknowledging import (
    Acknowledging,
    Leaders,
    acknowledgements,
    check_renewals,
    member_of,
)
from tailrace.doors.kafka.share_sessions import CLOSING, OPENING
from tailrace.model.faults import Fault, InvalidShareSessionEpoch
from tailrace.model.ids import Id
from tailrace.wire.faults import error_of
from tailrace.wire.messages.share_acknowledge import (
    PartitionAcknowledged,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    TopicAcknowledged,
)


async def share_acknowledge(request: ShareAcknowledgeRequest, call: Call) -> ShareAcknowledgeResponse:
    queues, sessions = call.services.queues, call.client.door.share_sessions
    try:
        queues.require_enabled(call.caller)
        member = member_of(request.group_id, request.member_id)
        if request.share_session_epoch == OPENING:
            raise InvalidShareSessionEpoch("ShareAcknowledge cannot open a share session.")
        given = acknowledgements(request.topics)
        check_renewals(given, renews=request.is_renew_ack, version=call.version)
        session = sessions.session_for(call.caller, member, request.share_session_epoch, call.client.connection_number)
    except Fault as fault:
        return ShareAcknowledgeResponse(error_code=error_of(fault), error_message=str(fault))
    results = await Acknowledging(call, session, given, beside=False).outcomes()
    if request.share_session_epoch == CLOSING:
        sessions.close(session)
    leaders = Leaders(call)
    topics: dict[Id, list[PartitionAcknowledged]] = {}
    for place, refused in results.items():
        topics.setdefault(place.topic_id, []).append(
            PartitionAcknowledged(
                partition=place.partition,
                error_code=error_of(refused) if refused else 0,
                error_message=str(refused) if refused else None,
                current_leader=leaders.hint(place, refused),
            )
        )
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=queues.lock_ms(call.caller, member.group),
        topics=tuple(TopicAcknowledged(topic_id=topic, partitions=tuple(some)) for topic, some in topics.items()),
        node_endpoints=leaders.endpoints(),
    )
