"""The part that ShareFetch and ShareAcknowledge have in common: the member, its session, its acknowledgements."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from tailrace.broker.services.queues import Acknowledge, Acknowledgement, ShareMember
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.records.leader_endpoints import endpoints_of
from tailrace.doors.kafka.share_sessions import ShareSession
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import Id, TopicPartition
from tailrace.wire.messages.acknowledgements import TopicToAcknowledge
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint

MEMBER_ID_MAX_CHARS: Final = 36

Acknowledgements = Mapping[TopicPartition, Sequence[Acknowledgement]]


def member_of(group_id: str | None, member_id: str | None) -> ShareMember:
    if not group_id:
        raise InvalidRequest("GroupId can't be empty.")
    if not member_id or len(member_id) > MEMBER_ID_MAX_CHARS:
        raise InvalidRequest(f"MemberId must have 1 to {MEMBER_ID_MAX_CHARS} characters.")
    return ShareMember(group_id, member_id)


def acknowledgements(topics: Iterable[TopicToAcknowledge]) -> dict[TopicPartition, list[Acknowledgement]]:
    """By partition. The same partition may appear more than once."""
    found: dict[TopicPartition, list[Acknowledgement]] = {}
    for topic in topics:
        for one in topic.partitions:
            for batch in one.acknowledgement_batches:
                found.setdefault(TopicPartition(Id(topic.topic_id), one.partition), []).append(
                    Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                )
    return found


def check_renewals(given: Acknowledgements, *, renews: bool, version: int) -> None:
    """Locks are renewed only by requests that say so, from version 2 on."""
    if not renews and any(Acknowledge.RENEW in one.types for some in given.values() for one in some):
        raise InvalidRequest(
            "Acknowledgements that renew need IsRenewAck." if version > 1 else "Version 1 has no renewals."
        )


class Acknowledging:
    """Acknowledgements of several partitions: decided at once, for what the member holds now, and durable later."""

    def __init__(self, call: Call, session: ShareSession, given: Acknowledgements, *, beside: bool) -> None:
        """`beside`: the caller does something else before it waits for the outcomes."""
        begun = {place: _begin(call, session, place, some) for place, some in given.items()}
        if not beside and len(begun) == 1:
            self._begun: Mapping[TopicPartition, Fault | Awaitable[Fault | None]] = begun
        else:  # several are stored at the same time
            self._begun = {
                place: one if isinstance(one, Fault) else asyncio.ensure_future(one) for place, one in begun.items()
            }

    async def outcomes(self) -> dict[TopicPartition, Fault | None]:
        return {place: one if isinstance(one, Fault) else await one for place, one in self._begun.items()}


def _begin(
    call: Call, session: ShareSession, place: TopicPartition, given: Sequence[Acknowledgement]
) -> Fault | Coroutine[Any, Any, Fault | None]:
    try:
        durable = call.services.queues.acknowledge(call.caller, session.member, place, given)
    except Fault as fault:
        return fault.with_traceback(None)
    return _outcome(durable)


async def _outcome(durable: Awaitable[None]) -> Fault | None:
    try:
        await durable
    except Fault as fault:
        return fault.with_traceback(None)
    return None


class Leaders:
    """The leaders that a response names in place of this broker (KIP-951)."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._named: list[int] = []

    def hint(self, place: TopicPartition, fault: Fault | None) -> LeaderIdAndEpoch:
        if fault is None:
            return LeaderIdAndEpoch()
        leader, epoch = self._call.services.topics.leader_hint(place.topic_id, place.partition, fault)
        self._named.append(leader)
        return LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)

    def endpoints(self) -> tuple[NodeEndpoint, ...]:
        return tuple(
            NodeEndpoint(node_id=one.broker, host=one.host, port=one.port, rack=one.rack)
            for one in endpoints_of(self._call, self._named)
        )
