"""DeleteTopics: delete topics and their records, by name, or from version 6 on by topic id."""

from collections.abc import Sequence
from typing import Final

from tailrace.cluster.image import Topic
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault, InvalidRequest, TopicDeletionDisabled
from tailrace.model.ids import NO_ID, Id
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
    answers = await call.services.topics.delete(call.caller, [_named(one) for one in wanted])
    return DeleteTopicsResponse(
        topics=tuple(_answer(one, answer, call.version) for one, answer in zip(wanted, answers, strict=True))
    )


def _named(wanted: TopicToDelete) -> str | Id | Fault:
    if wanted.name is None and wanted.topic_id == NO_ID:
        return InvalidRequest("Neither topic name nor id were specified.")
    if wanted.name is not None and wanted.topic_id != NO_ID:
        return InvalidRequest("You may not specify both topic name and topic id.")
    return Id(wanted.topic_id) if wanted.name is None else wanted.name


def _answer(wanted: TopicToDelete, answer: Topic | Fault, version: int) -> DeletedTopic:
    if isinstance(answer, Fault):
        code = error_of(answer)
        if isinstance(answer, TopicDeletionDisabled) and version < FIRST_WITH_DISABLED:
            code = Error.INVALID_REQUEST
        return DeletedTopic(name=wanted.name, topic_id=wanted.topic_id, error_code=code, error_message=str(answer))
    return DeletedTopic(name=answer.name, topic_id=answer.id)
