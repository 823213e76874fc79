"""A client that sends requests to both brokers while two of them believe they are the controller.

It reads the brokers' own state, which no real client can. The newer controller creates a topic, then the older one is
asked to delete it. The older one may give no response, answer that it is not the controller, or have the topic deleted.
If it answers that the topic does not exist, it answered without a quorum.
"""

import asyncio
from typing import Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.topic_recreator import (
    CREATE_VERSION,
    DELETE_VERSION,
    TIMEOUT_MS,
    ControllerOf,
)
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, TopicToDelete

CHECK_SECONDS: Final = 0.02
TOPICS_MAX: Final = 10


class RivalControllers:
    def __init__(self, router: Router, replicas: int, controller_of: ControllerOf) -> None:
        self.name = router.name
        self._router = router
        self._replicas = replicas
        self._controller_of = controller_of
        self._topics = 0  # created so far
        self.stopping = False

    @property
    def done(self) -> bool:
        return True

    async def run(self) -> None:
        while not self.stopping:
            controllers = [
                (controller.epoch, host)
                for host in self._router.hosts()
                if (controller := self._controller_of(host)) is not None
            ]
            if len(controllers) > 1 and self._topics < TOPICS_MAX:
                await self._call_both(min(controllers)[1], max(controllers)[1])
            await asyncio.sleep(CHECK_SECONDS)

    async def _call_both(self, old: str, new: str) -> None:
        self._topics += 1
        name = f"{self.name}-{self._topics}"
        topic = NewTopic(name=name, num_partitions=1, replication_factor=self._replicas)
        create = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        created: CreateTopicsResponse | None = await self._router.call(new, create, CREATE_VERSION)
        old_controller = self._controller_of(old)
        if created is None or created.topics[0].error_code != 0 or old_controller is None:
            return
        delete = DeleteTopicsRequest(topics=(TopicToDelete(name=name),), timeout_ms=TIMEOUT_MS)
        deleted: DeleteTopicsResponse | None = await self._router.call(old, delete, DELETE_VERSION)
        is_unknown = deleted is not None and deleted.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        if is_unknown and self._controller_of(old) is old_controller:
            raise InvariantViolated(
                Invariant.CONTROLLER, f"{old} does not know topic {name}, which {new} had created before"
            )
