"""CreatePartitions: add partitions to topics; with validate_only, only check whether that is possible."""

from tailrace.cluster.controller import MorePartitions
from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.request_limits import repeated
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.wire.faults import error_of
from tailrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    GrownTopic,
    TopicToGrow,
)


async def create_partitions(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    twice = repeated(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if topic.name not in twice]
    answers = await call.services.topics.grow(
        call.caller,
        [_more(topic) for topic in topics],
        validate_only=request.validate_only,
        within_s=max(request.timeout_ms, 0) / 1000,
    )
    grown = [_answer(topic.name, answer) for topic, answer in zip(topics, answers, strict=True)]
    fault = InvalidRequest("Duplicate topic name.")
    return CreatePartitionsResponse(results=(*grown, *(_answer(name, fault) for name in twice)))


def _more(wanted: TopicToGrow) -> MorePartitions:
    assignment = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
    return MorePartitions(topic=wanted.name, total=wanted.count, assignment=assignment)


def _answer(name: str, answer: Topic | Fault) -> GrownTopic:
    if isinstance(answer, Fault):
        return GrownTopic(name=name, error_code=error_of(answer), error_message=str(answer))
    return GrownTopic(name=name)
