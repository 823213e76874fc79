"""Making topics: by request, or because somebody asked for one that is not there."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tailrace.cluster.controller import Controller, NewTopic, TopicCreated
from tailrace.doors.kafka.call import Call
from tailrace.doors.kafka.changes import change_each
from tailrace.model.faults import Fault, PolicyViolation, TopicExists
from tailrace.model.ids import Id
from tailrace.model.limits import partitions_per_request_max
from tailrace.model.proposal import Proposal

by_default: Final = -1


async def create_each(
    call: Call, wanted: Sequence[NewTopic | Fault], *, validate_only: bool = False
) -> list[TopicCreated | Fault]:
    """Create topics, each on its own; when this returns, those that were made are led."""
    partitions = sum(max(one.partitions, len(one.assignment)) for one in wanted if not isinstance(one, Fault))
    if partitions > partitions_per_request_max:
        fault = PolicyViolation(f"{partitions} partitions at once; a request may make {partitions_per_request_max}")
        return [fault for _ in wanted]
    changes = [partial(_propose, one, call.node.ports.random.new_id) for one in wanted]
    answers = await change_each(call, changes, validate_only=validate_only)
    await call.node.until_led([one.id for one in answers if isinstance(one, TopicCreated)])
    return answers


def _propose(wanted: NewTopic | Fault, new_id: Callable[[], Id], controller: Controller) -> Proposal[TopicCreated]:
    if isinstance(wanted, Fault):
        raise wanted
    return controller.create_topic(wanted, new_id)


async def create_topics_by_default(call: Call, names: Sequence[str]) -> dict[str, Fault]:
    """Create topics as the broker's settings say; what could not be made, and why."""
    wanted = [
        NewTopic(name=name, partitions=default_partitions(call), replication_factor=default_replicas(call))
        for name in names
    ]
    answers = await create_each(call, wanted)
    return {
        name: answer
        for name, answer in zip(names, answers, strict=True)
        if isinstance(answer, Fault) and not isinstance(answer, TopicExists)
    }


def default_partitions(call: Call) -> int:
    return call.node.settings.num_partitions


def default_replicas(call: Call) -> int:
    """How many replicas a partition has when nobody says; -1 leaves it to the controller."""
    return call.node.settings.default_replication_factor
