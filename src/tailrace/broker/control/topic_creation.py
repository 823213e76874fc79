"""Creating topics: the one way to do it, for requests of clients, for topics that are created on demand, and for the
brokers' own topics.

The controller decides (`create`). Any other broker asks it (`request`, `request_internal`): clients' topics travel as a
forwarded CreateTopics, internal ones in a message of their own, which also says that existing is no fault. Done when
this broker knows the new topics and their partitions have leaders, or the time is up.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tailrace.broker.control.cluster_changes import ClusterChanges
from tailrace.broker.control.controller_calls import ControllerCalls
from tailrace.broker.metadata.progress import LED_WITHIN_S, MetadataProgress
from tailrace.cluster.controller import Controller, NewTopic, TopicCreated
from tailrace.model.faults import Fault, PolicyViolation, TopicExists
from tailrace.model.ids import Id
from tailrace.model.limits import PARTITIONS_PER_REQUEST_MAX
from tailrace.model.proposal import Proposal
from tailrace.model.topics import INTERNAL_TOPIC_SETTINGS
from tailrace.wire.compile import decode, encode
from tailrace.wire.faults import fault_of
from tailrace.wire.messages import create_topics as wire
from tailrace.wire.messages.peers.forward import Forward
from tailrace.wire.messages.peers.make_internal_topic import MakeInternalTopic

CREATE_TOPICS_KEY: Final = 19
CREATE_TOPICS_VERSION: Final = 7


class TopicCreation:
    def __init__(
        self, changes: ClusterChanges, calls: ControllerCalls, progress: MetadataProgress, new_id: Callable[[], Id]
    ) -> None:
        self._changes = changes
        self._calls = calls
        self._progress = progress
        self._new_id = new_id

    async def create(
        self, wanted: Sequence[NewTopic | Fault], *, validate_only: bool = False, within_s: float = LED_WITHIN_S
    ) -> list[TopicCreated | Fault]:
        """Create topics, on the controller, each with its own result; a fault among `wanted` is returned as it is."""
        partitions = sum(max(one.partitions, len(one.assignment)) for one in wanted if not isinstance(one, Fault))
        if partitions > PARTITIONS_PER_REQUEST_MAX:
            fault = PolicyViolation(
                f"the request creates {partitions} partitions, at most {PARTITIONS_PER_REQUEST_MAX} are allowed"
            )
            return [fault for _ in wanted]
        changes = [partial(_propose, one, self._new_id) for one in wanted]
        answers = await self._changes.each(changes, validate_only=validate_only)
        if not validate_only:
            await self._progress.until_led([one.id for one in answers if isinstance(one, TopicCreated)], within_s)
        return answers

    async def request(self, wanted: Sequence[NewTopic]) -> dict[str, Fault]:
        """Create topics from any broker but the controller; a fault for each that could not be created. A topic that
        exists already is no fault."""
        topics = tuple(
            wire.NewTopic(name=one.name, num_partitions=one.partitions, replication_factor=one.replication_factor)
            for one in wanted
        )
        body = encode(wire.CreateTopicsRequest(topics=topics), CREATE_TOPICS_VERSION)
        forward = Forward(api_key=CREATE_TOPICS_KEY, api_version=CREATE_TOPICS_VERSION, body=body)
        try:
            answer = await self._calls.ask(forward)
        except Fault as fault:
            return {one.name: fault for one in wanted}
        response, _ = decode(wire.CreateTopicsResponse, CREATE_TOPICS_VERSION, memoryview(answer.body), 0)
        faults = {one.name: fault_of(one.error_code, one.error_message or "") for one in response.topics}
        await self._progress.until_led([one.topic_id for one in response.topics if faults[one.name] is None])
        return {name: one for name, one in faults.items() if one is not None and not isinstance(one, TopicExists)}

    async def request_internal(self, name: str, partitions: int, replication_factor: int) -> None:
        """Create a topic of the brokers' own, from any broker, unless it exists."""
        wanted = MakeInternalTopic(name=name, partitions=partitions, replication_factor=replication_factor)
        made = await self._calls.ask(wanted)
        await self._progress.until_led([Id(made.topic_id)])


def _propose(wanted: NewTopic | Fault, new_id: Callable[[], Id], controller: Controller) -> Proposal[TopicCreated]:
    if isinstance(wanted, Fault):
        raise wanted
    return controller.create_topic(wanted, new_id)


def propose_internal(request: MakeInternalTopic, new_id: Callable[[], Id], controller: Controller) -> Proposal[Id]:
    """The controller's side of `request_internal`; answers with the topic's id."""
    if (existing := controller.image.topics.get(request.name)) is not None:
        return Proposal(existing.id)
    wanted = NewTopic(
        name=request.name,
        partitions=request.partitions,
        replication_factor=request.replication_factor,
        settings=INTERNAL_TOPIC_SETTINGS,
        internal=True,
    )
    created = _propose(wanted, new_id, controller)
    return Proposal(created.answer.id, created.records)
