"""ShareFetch: take records as a member of a share group, and acknowledge those delivered before (KIP-932).

Acknowledgements take effect while the request waits for records; the response has the results of both.
"""

import asyncio
from collections.abc import Mapping

from tailrace.broker.services.queues import TakeLimits, Taken
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.queues.acknowledging import (
    Acknowledgements,
    Acknowledging,
    Leaders,
    acknowledgements,
    check_renewals,
    member_of,
)
from tailrace.doors.kafka.share_sessions import CLOSING, OPENING, ShareSession
from tailrace.model.faults import Fault, InvalidRequest, ShareSessionLimitReached
from tailrace.model.ids import Id, TopicPartition
from tailrace.model.limits import FETCH_WAIT_MAX_MS
from tailrace.wire.faults import error_of
from tailrace.wire.messages.share_fetch import (
    AcquiredRecords,
    PartitionShareFetched,
    ShareFetchRequest,
    ShareFetchResponse,
    TopicShareFetched,
)

Results = Mapping[TopicPartition, Taken | Fault]


async def share_fetch(request: ShareFetchRequest, call: Call) -> ShareFetchResponse:
    sessions = call.client.door.share_sessions
    try:
        call.services.queues.require_enabled(call.caller)
        member = member_of(request.group_id, request.member_id)
        given = acknowledgements(request.topics)
        _check(request, given, call.version)
        session = sessions.session_for(call.caller, member, request.share_session_epoch, call.client.connection_number)
    except Fault as fault:
        if isinstance(fault, ShareSessionLimitReached):  # the client tries again at once
            await asyncio.sleep(min(max(request.max_wait_ms, 0), FETCH_WAIT_MAX_MS) / 1000)
        return ShareFetchResponse(error_code=error_of(fault), error_message=str(fault))
    try:
        session.add(
            TopicPartition(Id(topic.topic_id), one.partition) for topic in request.topics for one in topic.partitions
        )
    except Fault as fault:
        return ShareFetchResponse(error_code=error_of(fault), error_message=str(fault))
    acknowledging = Acknowledging(call, session, given, beside=True)
    for forgotten in request.forgotten_topics:
        for number in forgotten.partitions:
            session.partitions.pop(TopicPartition(Id(forgotten.topic_id), number), None)
    taken: Results = {}
    if request.share_session_epoch != CLOSING and not request.is_renew_ack:
        taken = await _take(request, call, session)
    acknowledged = await acknowledging.outcomes()
    if request.share_session_epoch == CLOSING:
        sessions.close(session)
    shown = session.partitions if request.share_session_epoch == OPENING else dict.fromkeys((*taken, *acknowledged))
    return _response(call, session, list(shown), taken, acknowledged)


def _check(request: ShareFetchRequest, given: Acknowledgements, version: int) -> None:
    if given and request.share_session_epoch == OPENING:
        raise InvalidRequest("A request that opens a share session has no acknowledgements.")
    check_renewals(given, renews=request.is_renew_ack, version=version)
    limits = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    if request.is_renew_ack and any(limits):
        raise InvalidRequest("With IsRenewAck, MaxWaitMs, MinBytes, MaxBytes and MaxRecords must be 0.")


async def _take(request: ShareFetchRequest, call: Call, session: ShareSession) -> Results:
    limits = TakeLimits(
        records=request.max_records,
        max_bytes=min(request.max_bytes, call.client.door.answer_max_bytes),
        max_wait_ms=request.max_wait_ms if request.min_bytes > 0 else 0,
        exact=request.share_acquire_mode == 1,
    )
    places = list(session.partitions)
    taken = await call.services.queues.take(call.caller, session.member, places, limits, session.ended)
    for place, one in taken.items():
        if isinstance(one, Taken) and place in session.partitions:
            session.rotate(place)
    return taken


def _response(
    call: Call,
    session: ShareSession,
    shown: list[TopicPartition],
    taken: Results,
    acknowledged: Mapping[TopicPartition, Fault | None],
) -> ShareFetchResponse:
    leaders = Leaders(call)
    topics: dict[Id, list[PartitionShareFetched]] = {}
    for place in shown:
        result, refused = taken.get(place), acknowledged.get(place)
        fault = result if isinstance(result, Fault) else None
        found = result if isinstance(result, Taken) else Taken((), ())
        topics.setdefault(place.topic_id, []).append(
            PartitionShareFetched(
                partition=place.partition,
                error_code=error_of(fault) if fault else 0,
                error_message=str(fault) if fault else None,
                acknowledge_error_code=error_of(refused) if refused else 0,
                acknowledge_error_message=str(refused) if refused else None,
                current_leader=leaders.hint(place, fault or refused),
                records=found.records[0] if len(found.records) == 1 else b"".join(found.records),
                acquired_records=tuple(
                    AcquiredRecords(first_offset=one.first, last_offset=one.last, delivery_count=one.deliveries)
                    for one in found.acquired
                ),
            )
        )
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=call.services.queues.lock_ms(call.caller, session.member.group),
        topics=tuple(TopicShareFetched(topic_id=topic, partitions=tuple(some)) for topic, some in topics.items()),
        node_endpoints=leaders.endpoints(),
    )
