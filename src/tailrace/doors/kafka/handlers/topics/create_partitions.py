"""CreatePartitions: give topics more partitions, or say whether they could have them."""

from functools import partial

from tailrace.cluster.controller import Controller, MorePartitions
from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import change_each, repeated
from tailrace.model.faults import Fault, InvalidRequest, PolicyViolation
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.proposal import Proposal
from tailrace.wire.faults import error_of
from tailrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    GrownTopic,
    TopicToGrow,
)


class Room:
    """How many partitions a request may still make."""

    def __init__(self) -> None:
        self._left = PARTITIONS_PER_REQUEST_MAX

    def take(self, count: int) -> None:
        if count > self._left:
            raise PolicyViolation(f"one request may make at most {PARTITIONS_PER_REQUEST_MAX} partitions")
        self._left -= count


async def create_partitions(request: CreatePartitionsRequest, call: Call) -> CreatePartitionsResponse:
    twice = repeated(topic.name for topic in request.topics)
    topics = [topic for topic in request.topics if topic.name not in twice]
    room = Room()
    changes = [partial(_grow, topic, room) for topic in topics]
    answers = await change_each(call, changes, validate_only=request.validate_only)
    grown_ids = [one.id for one in answers if isinstance(one, Topic)]
    await call.node.until_led(grown_ids, max(request.timeout_ms, 0) / 1000)
    grown = [_answer(topic.name, answer) for topic, answer in zip(topics, answers, strict=True)]
    fault = InvalidRequest("the topic is named twice in one request")
    return CreatePartitionsResponse(results=(*grown, *(_answer(name, fault) for name in twice)))


def _grow(wanted: TopicToGrow, room: Room, controller: Controller) -> Proposal[Topic]:
    assignment = None if wanted.assignments is None else [one.broker_ids for one in wanted.assignments]
    more = MorePartitions(topic=wanted.name, total=wanted.count, assignment=assignment)
    proposal = controller.add_partitions(more)
    room.take(len(proposal.records))
    return proposal


def _answer(name: str, answer: Topic | Fault) -> GrownTopic:
    if isinstance(answer, Fault):
        return GrownTopic(name=name, error_code=error_of(answer), error_message=str(answer))
    return GrownTopic(name=name)
