"""The id of a topic in responses that have one beside the name."""

from tailrace.doors.kafka.call import Call
from tailrace.model.ids import NO_ID, Id


def topic_id(call: Call, name: str) -> Id:
    """Zero if there is no such topic."""
    topic = call.services.topics.find(call.caller, name)
    return NO_ID if topic is None else topic.id
