"""What has settings, as requests name it: a topic, a broker, with an empty name all brokers together, or a group.

A broker's settings are shown by itself alone, for only it knows what it was started with; they are changed by the
controller, for any broker that has joined.
"""

from collections.abc import Callable, Sequence
from functools import partial

from tailrace.cluster.controller import Controller
from tailrace.cluster.image import Resource
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import change_each, repeated
from tailrace.doors.kafka.handlers.topics.creation import asks_for_compaction, warn_of_compaction
from tailrace.model.faults import Fault, InvalidRequest
from tailrace.model.frozen import frozen
from tailrace.model.proposal import Proposal
from tailrace.wire.faults import error_of
from tailrace.wire.messages.alter_configs import AlteredResource


def resource_to_show(call: Call, kind: int, name: str) -> Resource:
    """The kind of resource that is meant; `InvalidRequest` when it has no settings, or is another broker."""
    resource = _kind(kind, name)
    if resource is Resource.BROKER and name not in ("", str(call.node.broker_id)):
        me = call.node.broker_id
        raise InvalidRequest(f"this is broker {me}, not {name!r}: each shows its own settings; an empty name means all")
    return resource


def _resource_to_alter(controller: Controller, kind: int, name: str) -> Resource:
    resource = _kind(kind, name)
    if resource is Resource.BROKER and name:
        known = [str(broker) for broker in sorted(controller.image.brokers)]
        if name not in known:
            raise InvalidRequest(f"there is no broker {name!r}, only {', '.join(known)}; an empty name means all")
    return resource


def _kind(kind: int, name: str) -> Resource:
    if kind not in tuple(Resource):
        known = "topics (2), brokers (4) and groups (32)"
        raise InvalidRequest(f"there are no settings of resource type {kind}, only of {known}")
    if kind == Resource.GROUP and not name:
        raise InvalidRequest("a group needs a name")
    return Resource(kind)


@frozen
class Alteration:
    """One resource of a request, and what is to happen to its settings."""

    kind: int
    name: str
    propose: Callable[[Controller, Resource], Proposal[None]]


async def alter_each(
    call: Call, alterations: Sequence[Alteration], *, validate_only: bool
) -> tuple[AlteredResource, ...]:
    twice = repeated((one.kind, one.name) for one in alterations)
    once = [one for one in alterations if (one.kind, one.name) not in twice]
    compacted = _compacted(call, once)
    answers = await change_each(call, [partial(_propose, one) for one in once], validate_only=validate_only)
    warn_of_compaction(name for name in _compacted(call, once) if name not in compacted)
    altered = [_altered(one.kind, one.name, answer) for one, answer in zip(once, answers, strict=True)]
    fault = InvalidRequest("the resource is named twice in one request")
    return (*altered, *(_altered(kind, name, fault) for kind, name in twice))


def _compacted(call: Call, alterations: Sequence[Alteration]) -> dict[str, None]:
    """Topics among them that are to be compacted at this moment."""
    topics = call.node.hosted.image.topics
    named = [one.name for one in alterations if one.kind == Resource.TOPIC and one.name in topics]
    return {name: None for name in named if asks_for_compaction(topics[name].settings)}


def _propose(one: Alteration, controller: Controller) -> Proposal[None]:
    return one.propose(controller, _resource_to_alter(controller, one.kind, one.name))


def _altered(kind: int, name: str, answer: Fault | None) -> AlteredResource:
    if answer is None:
        return AlteredResource(resource_type=kind, resource_name=name)
    return AlteredResource(
        resource_type=kind, resource_name=name, error_code=error_of(answer), error_message=str(answer)
    )
