"""ElectLeaders: elect the preferred leader, the first replica, of partitions. Each partition has its own result.

Unclean elections are refused: they would elect a replica that may lack acknowledged records.
"""

from collections.abc import Iterable

from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.handlers.by_topic import by_topic, explained
from tailrace.doors.kafka.request_limits import partitions_once
from tailrace.doors.kafka.request_timeout import request_timeout_s
from tailrace.model.faults import ElectionNotNeeded, Fault, InvalidRequest
from tailrace.model.ids import PartitionName
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.wire.faults import error_of
from tailrace.wire.messages.elect_leaders import (
    PREFERRED,
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicElected,
)
from tailrace.wire.messages.named_topics import TopicPartitions


async def elect_leaders(request: ElectLeadersRequest, call: Call) -> ElectLeadersResponse:
    if request.election_type != PREFERRED:
        return _refused(request)
    answers = await call.services.admin.elect_preferred(call.caller, _named(request, call), request_timeout_s(request))
    if request.topics is None:  # as in Kafka: a request for all partitions omits those that need no election
        answers = {one: answer for one, answer in answers.items() if not isinstance(answer, ElectionNotNeeded)}
    return ElectLeadersResponse(topics=_elected(answers))


def _named(request: ElectLeadersRequest, call: Call) -> list[PartitionName]:
    if request.topics is None:
        topics = call.services.topics.all(call.caller).values()
        return [PartitionName(topic.name, index) for topic in topics for index in range(len(topic.partitions))]
    return _asked(request.topics)


def _asked(topics: Iterable[TopicPartitions]) -> list[PartitionName]:
    once = partitions_once(((one.name, one.partitions) for one in topics), PARTITIONS_PER_REQUEST_MAX)
    return [PartitionName(name, index) for name, indexes in once.items() for index in indexes]


def _refused(request: ElectLeadersRequest) -> ElectLeadersResponse:
    fault = InvalidRequest(
        f"election type {request.election_type} is not supported, only PREFERRED (0): "
        "an UNCLEAN election (1) could lose acknowledged records"
    )
    if request.topics is None:
        return ElectLeadersResponse(error_code=error_of(fault))
    return ElectLeadersResponse(topics=_elected(dict.fromkeys(_asked(request.topics), fault)))


def _elected(answers: dict[PartitionName, Fault | None]) -> tuple[TopicElected, ...]:
    return tuple(
        TopicElected(name=name, partitions=tuple(explained(number, fault) for number, fault in faults.items()))
        for name, faults in by_topic(answers).items()
    )
