"""DeleteTopics: remove topics and all that is in them, by name, or from version 6 on by id."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from tailrace.cluster.controller import Controller
from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import change_each
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.ids import NO_ID, Id
from tailrace.model.proposal import Proposal
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of
from tailrace.wire.messages.delete_topics import (
    DeletedTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    TopicToDelete,
)

FIRST_WITH_DISABLED: Final = 3
FIRST_WITH_IDS: Final = 6


async def delete_topics(request: DeleteTopicsRequest, call: Call) -> DeleteTopicsResponse:
    wanted: Sequence[TopicToDelete] = request.topics
    if call.version < FIRST_WITH_IDS:
        wanted = [TopicToDelete(name=name) for name in request.topic_names]
    if not call.node.settings.delete_topic_enable:
        return DeleteTopicsResponse(topics=tuple(_disabled(one, call.version) for one in wanted))
    taken: dict[Id, None] = {}
    answers = await change_each(call, [partial(_delete, one, taken) for one in wanted])
    return DeleteTopicsResponse(topics=tuple(_answer(one, answer) for one, answer in zip(wanted, answers, strict=True)))


def _delete(wanted: TopicToDelete, taken: dict[Id, None], controller: Controller) -> Proposal[Topic]:
    """Name and id of the same topic in one request must not remove it twice; `taken` remembers."""
    if (wanted.name is None) == (wanted.topic_id == NO_ID):
        raise InvalidRequest("a topic is named by its name or by its id: one of them, not both")
    proposal = controller.delete_topic(wanted.topic_id if wanted.name is None else wanted.name)
    if proposal.answer.id in taken:
        raise InvalidRequest("the topic is named twice in one request")
    taken[proposal.answer.id] = None
    return proposal


def _answer(wanted: TopicToDelete, answer: Topic | Fault) -> DeletedTopic:
    if isinstance(answer, Fault):
        return DeletedTopic(
            name=wanted.name, topic_id=wanted.topic_id, error_code=error_of(answer), error_message=str(answer)
        )
    return DeletedTopic(name=answer.name, topic_id=answer.id)


def _disabled(wanted: TopicToDelete, version: int) -> DeletedTopic:
    error = Error.TOPIC_DELETION_DISABLED if version >= FIRST_WITH_DISABLED else Error.INVALID_REQUEST
    message = "delete.topic.enable is false: topics cannot be deleted"
    return DeletedTopic(name=wanted.name, topic_id=wanted.topic_id, error_code=error, error_message=message)
