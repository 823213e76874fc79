"""A client that knows more than clients can: when two brokers think that they are the controller, it asks both.

The newer one makes a topic; the older one is then asked to delete it. It may say nothing, or that it is not the
controller, or have it deleted. That there is no such topic it can only say if it speaks without a quorum.
"""

import asyncio
from typing import Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.clients.topic_recreator import (
    CREATE_VERSION,
    DELETE_VERSION,
    TIMEOUT_MS,
    Controlling,
)
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, TopicToDelete

LOOK_SECONDS: Final = 0.02
TOPICS_MAX: Final = 10


class RivalControllers:
    def __init__(self, router: Router, replicas: int, controlling: Controlling) -> None:
        self.name = router.name
        self._router = router
        self._replicas = replicas
        self._controlling = controlling
        self._made = 0
        self.stopping = False

    @property
    def done(self) -> bool:
        return True

    async def run(self) -> None:
        while not self.stopping:
            found = [(one.epoch, host) for host in self._router.hosts() if (one := self._controlling(host)) is not None]
            if len(found) > 1 and self._made < TOPICS_MAX:
                await self._ask_both(min(found)[1], max(found)[1])
            await asyncio.sleep(LOOK_SECONDS)

    async def _ask_both(self, old: str, new: str) -> None:
        self._made += 1
        name = f"{self.name}-{self._made}"
        topic = NewTopic(name=name, num_partitions=1, replication_factor=self._replicas)
        create = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        made: CreateTopicsResponse | None = await self._router.ask(new, create, CREATE_VERSION)
        claim = self._controlling(old)
        if made is None or made.topics[0].error_code != 0 or claim is None:
            return
        delete = DeleteTopicsRequest(topics=(TopicToDelete(name=name),), timeout_ms=TIMEOUT_MS)
        said: DeleteTopicsResponse | None = await self._router.ask(old, delete, DELETE_VERSION)
        unknown = said is not None and said.topics[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        if unknown and self._controlling(old) is claim:
            raise InvariantViolated(
                Invariant.CONTROLLER, f"{old} does not know {name}, which {new} has made before it was asked"
            )
