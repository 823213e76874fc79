"""A client that makes, deletes and makes again topics of one name, through any broker, and remembers what it was told.

What it knows of a name is certain as long as every answer comes. A request that nobody answered may still be carried
out, at any time: of such a name nothing is known any more, ever, and it goes on with another. An answer that
contradicts what is certain comes from somebody who speaks for the cluster and does not lead it. Brokers that pass a
request on may do so twice, though, as Kafka's do: "it is there already" may then be said of what this very request has
made. So a refusal counts only where the broker that was asked is the controller itself, all the while.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from tailrace.broker.machines.runtime import MachineRuntime
from tailrace.cluster.controller import Controller
from tailrace.model.ids import Id
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, TopicToDelete

NAMES_MAX: Final = 5  # then it only waits
CREATE_VERSION: Final = 7
DELETE_VERSION: Final = 6
TIMEOUT_MS: Final = 1000
PAUSE_MAX_SECONDS: Final = 1.5
AGAIN_SECONDS: Final = 0.2
NOT_NOW: Final = (Error.INVALID_REPLICATION_FACTOR,)  # too few brokers are there

Controlling = Callable[[str], MachineRuntime[Controller] | None]


class TopicRecreator:
    def __init__(
        self,
        router: Router,
        prefix: str,
        replicas: int,
        controlling: Callable[[str], MachineRuntime[Controller] | None],
    ) -> None:
        self.name = router.name
        self._router = router
        self._prefix = prefix
        self._replicas = replicas
        self._controlling = controlling  # as what a host is the controller; None: it is not
        self._number = 0
        self.there: Id | None = None  # the topic of the current name, which is certain
        self.made = 0
        self.recreated = 0
        self._made_here = 0  # under the current name
        self.stopping = False

    @property
    def topic(self) -> str:
        return f"{self._prefix}{self._number}"

    @property
    def done(self) -> bool:
        return self.stopping and self.there is not None

    async def run(self) -> None:
        while not self.stopping:
            if self._number < NAMES_MAX:
                await self._change()
            await asyncio.sleep(self._router.rng.random() * PAUSE_MAX_SECONDS)
        while self.there is None:  # so that whoever writes to it can come to an end
            await self._create()
            await asyncio.sleep(AGAIN_SECONDS)

    async def _change(self) -> None:
        if self._router.rng.random() < 0.6 or self.there is None:
            await self._create()
        else:
            await self._delete()

    async def _create(self) -> None:
        topic = NewTopic(name=self.topic, num_partitions=1, replication_factor=self._replicas)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        answer: CreateTopicsResponse | None = await self._ask(request, CREATE_VERSION)
        said = None if answer is None else answer.topics[0]
        if self._is_done(None if said is None else said.error_code, there=Error.TOPIC_ALREADY_EXISTS, gone=Error.NONE):
            assert said is not None
            self.there = said.topic_id
            self.made += 1
            self.recreated += self._made_here > 0
            self._made_here += 1

    async def _delete(self) -> None:
        request = DeleteTopicsRequest(topics=(TopicToDelete(name=self.topic),), timeout_ms=TIMEOUT_MS)
        answer: DeleteTopicsResponse | None = await self._ask(request, DELETE_VERSION)
        code = None if answer is None else answer.topics[0].error_code
        if self._is_done(code, there=Error.NONE, gone=Error.UNKNOWN_TOPIC_OR_PARTITION):
            self.there = None

    async def _ask(self, request: object, version: int) -> Any:
        host = self._router.any_host()
        controlling = self._controlling(host)
        answer = await self._router.ask(host, request, version)
        self._asked_controller = controlling is not None and self._controlling(host) is controlling
        return answer

    def _is_done(self, code: int | None, *, there: Error, gone: Error) -> bool:
        """Hold an answer against what is certain: the one that is due if the topic is there, and if it is not."""
        due = gone if self.there is None else there
        if code == due:
            return code == 0
        if code == 0 or (code in (there, gone) and self._asked_controller):
            known = "is not there" if self.there is None else "is there"
            raise InvariantViolated(
                Invariant.CONTROLLER, f"topic {self.topic} {known}, but the answer is {Error(code).name}"
            )
        if code is not None and not Error(code).retriable and code not in (there, gone, *NOT_NOW):
            raise InvariantViolated(
                Invariant.CONTROLLER, f"topic {self.topic}: a change is refused: {Error(code).name}"
            )
        self._abandon()
        return False

    def _abandon(self) -> None:
        self._number += 1
        self.there, self._made_here = None, 0
