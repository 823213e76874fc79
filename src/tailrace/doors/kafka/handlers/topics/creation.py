"""Making topics: by request, or because somebody asked for one that is not there.

Topics are made by the controller. A request to make some goes there as it is; for a topic that is merely missing this
broker asks for it itself, and answers its client when it knows the new topic.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tailrace.cluster.controller import Controller, NewTopic, TopicCreated
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.controller_changes import change_each
from tailrace.doors.kafka.request_timeout import MAX_S
from tailrace.model.faults import Fault, PolicyViolation, RefusedElsewhere, TopicExists
from tailrace.model.ids import Id
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.proposal import Proposal
from tailrace.model.topics import TopicSettings, is_compacted
from tailrace.wire.compile import decode, encode
from tailrace.wire.errors import Error
from tailrace.wire.messages import create_topics as wire
from tailrace.wire.messages.peers.forward import Forward

if TYPE_CHECKING:
    from tailrace.broker.node import Node

logger: Final = logging.getLogger(__name__)

BY_DEFAULT: Final = -1
CREATE_TOPICS_KEY: Final = 19
CREATE_TOPICS_VERSION: Final = 7


async def create_each(
    call: Call, wanted: Sequence[NewTopic | Fault], *, validate_only: bool = False, within_s: float = MAX_S
) -> list[TopicCreated | Fault]:
    """Create topics, each on its own; when this returns, those that were made are led, or the time is up."""
    partitions = sum(max(one.partitions, len(one.assignment)) for one in wanted if not isinstance(one, Fault))
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        fault = PolicyViolation(f"{partitions} partitions at once; a request may make {PARTITIONS_PER_REQUEST_MAX}")
        return [fault for _ in wanted]
    changes = [partial(_propose, one, call.node.ports.random.new_id) for one in wanted]
    answers = await change_each(call, changes, validate_only=validate_only)
    if not validate_only:
        created = [one for one in answers if isinstance(one, TopicCreated)]
        _warn_of(call.node, created)
        await call.node.until_led([one.id for one in created], within_s)
    return answers


def _warn_of(node: "Node", created: Sequence[TopicCreated]) -> None:
    """Say what whoever made a topic may not have meant: it is allowed, as in Kafka."""
    broker = node.hosted.effective if created else node.settings
    for one in created:
        if one.warning is not None:
            logger.warning("%s", one.warning)
        wanted = TopicSettings.of(one.settings, broker).min_insync_replicas
        if wanted > one.replication_factor:
            logger.warning(
                "topic %s has min.insync.replicas=%d and replication factor %d: acks=all will always be refused",
                one.name,
                wanted,
                one.replication_factor,
            )
    warn_of_compaction(one.name for one in created if asks_for_compaction(one.settings))


def asks_for_compaction(settings: Mapping[str, str]) -> bool:
    return is_compacted(settings.get("cleanup.policy", ""))


def warn_of_compaction(topics: Iterable[str]) -> None:
    """What was asked for is taken, since applications cannot do without, and not done yet (ADR 0010)."""
    for topic in topics:
        logger.warning(
            "topic %s is to be compacted, which this release does not do yet: earlier values of a key are kept, and "
            "it grows unless its cleanup.policy is compact,delete; records without a key are refused",
            topic,
        )


def _propose(wanted: NewTopic | Fault, new_id: Callable[[], Id], controller: Controller) -> Proposal[TopicCreated]:
    if isinstance(wanted, Fault):
        raise wanted
    return controller.create_topic(wanted, new_id)


async def create_topics_by_default(call: Call, names: Sequence[str]) -> dict[str, Fault]:
    """Create topics as this broker's settings say; what could not be made, and why."""
    if not names:
        return {}
    if not call.node.is_controller:
        return await _have_created(call, names)
    wanted = [
        NewTopic(name=name, partitions=default_partitions(call), replication_factor=default_replicas(call))
        for name in names
    ]
    answers = await create_each(call, wanted)
    refused = {name: answer for name, answer in zip(names, answers, strict=True) if isinstance(answer, Fault)}
    return {name: fault for name, fault in refused.items() if not isinstance(fault, TopicExists)}


async def _have_created(call: Call, names: Sequence[str]) -> dict[str, Fault]:
    """The same through the controller; done when what was made is known and led here."""
    partitions, replicas = default_partitions(call), default_replicas(call)
    wanted = tuple(wire.NewTopic(name=name, num_partitions=partitions, replication_factor=replicas) for name in names)
    body = encode(wire.CreateTopicsRequest(topics=wanted), CREATE_TOPICS_VERSION)
    forward = Forward(api_key=CREATE_TOPICS_KEY, api_version=CREATE_TOPICS_VERSION, body=body)
    try:
        answer = await call.node.calls.controller(forward)
    except Fault as fault:
        return dict.fromkeys(names, fault)
    response, _ = decode(wire.CreateTopicsResponse, CREATE_TOPICS_VERSION, memoryview(answer.body), 0)
    there = (Error.NONE, Error.TOPIC_ALREADY_EXISTS)
    await call.node.until_led([one.topic_id for one in response.topics if one.error_code == Error.NONE])
    return {
        one.name: RefusedElsewhere(one.error_message or "", one.error_code)
        for one in response.topics
        if one.error_code not in there
    }


def default_partitions(call: Call) -> int:
    return call.node.settings.num_partitions


def default_replicas(call: Call) -> int:
    """How many replicas a partition has when nobody says; -1 leaves it to the controller."""
    return call.node.settings.default_replication_factor
