"""What several handlers need to make topics."""

from collections.abc import Sequence

from tailrace.cluster.controller import Controller, NewTopic, TopicCreated, try_each
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault, TopicExists
from tailrace.model.proposal import Proposal


async def create_topics_by_default(call: Call, names: Sequence[str]) -> dict[str, Fault]:
    """Create topics as the broker's settings say; what could not be made, and why."""
    settings = call.node.replicas.effective
    factor = replication_factor(call, settings.default_replication_factor)
    wanted = [NewTopic(name=name, partitions=settings.num_partitions, replication_factor=factor) for name in names]
    answers = await create_topics(call, wanted)
    return {
        one.name: answer
        for one, answer in zip(wanted, answers, strict=True)
        if isinstance(answer, Fault) and not isinstance(answer, TopicExists)
    }


async def create_topics(call: Call, wanted: Sequence[NewTopic]) -> list[TopicCreated | Fault]:
    """Create topics, each on its own; when this returns, those that were made are led."""
    new_id = call.node.ports.random.new_id

    def propose(controller: Controller) -> Proposal[list[TopicCreated | Fault]]:
        return try_each([lambda one=one: controller.create_topic(one, new_id) for one in wanted])  # type: ignore[misc]

    answers = await call.node.controller.write(propose)
    await call.node.replicas.settle()
    return answers


def replication_factor(call: Call, wanted: int) -> int:
    """Where nobody says, three, or as many as there are brokers."""
    return wanted if wanted > 0 else 1
