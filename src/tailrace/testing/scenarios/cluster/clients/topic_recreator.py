"""A client that creates, deletes and recreates topics of one name through any broker, and checks the responses.

As long as every request gets a response, the client knows whether the topic exists. A request without a response may
still be executed at any later time, so the client gives that name up and goes on with another one. A response that
contradicts what is known comes from a broker that acts as the controller without a quorum.

There is one exception: a broker that forwards a request to the controller may forward it twice, as Kafka's do. The
second attempt is then answered with TOPIC_ALREADY_EXISTS because of the first. So such an error counts only if the
broker that was called was itself the controller, from the request to the response.
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

NAMES_MAX: Final = 5  # then the client makes no more changes
CREATE_VERSION: Final = 7
DELETE_VERSION: Final = 6
TIMEOUT_MS: Final = 1000
PAUSE_MAX_SECONDS: Final = 1.5
RETRY_SECONDS: Final = 0.2
NOT_NOW: Final = (Error.INVALID_REPLICATION_FACTOR,)  # too few brokers are alive

ControllerOf = Callable[[str], MachineRuntime[Controller] | None]


class TopicRecreator:
    def __init__(
        self,
        router: Router,
        prefix: str,
        replicas: int,
        controller_of: ControllerOf,
    ) -> None:
        self.name = router.name
        self._router = router
        self._prefix = prefix
        self._replicas = replicas
        self._controller_of = controller_of  # the runtime with which a host is the controller; None: it is not
        self._number = 0  # of the current name
        self.topic_id: Id | None = None  # of the current name; None: the topic does not exist
        self.created = 0
        self.recreated = 0
        self._created_of_name = 0  # with the current name
        self.stopping = False

    @property
    def topic(self) -> str:
        return f"{self._prefix}{self._number}"

    @property
    def done(self) -> bool:
        return self.stopping and self.topic_id is not None

    async def run(self) -> None:
        while not self.stopping:
            if self._number < NAMES_MAX:
                await self._change()
            await asyncio.sleep(self._router.rng.random() * PAUSE_MAX_SECONDS)
        while self.topic_id is None:  # so that the producer to this topic can finish
            await self._create()
            await asyncio.sleep(RETRY_SECONDS)

    async def _change(self) -> None:
        if self._router.rng.random() < 0.6 or self.topic_id is None:
            await self._create()
        else:
            await self._delete()

    async def _create(self) -> None:
        topic = NewTopic(name=self.topic, num_partitions=1, replication_factor=self._replicas)
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=TIMEOUT_MS)
        response: CreateTopicsResponse | None = await self._call(request, CREATE_VERSION)
        topic_response = None if response is None else response.topics[0]
        code = None if topic_response is None else topic_response.error_code
        if self._is_done(code, if_exists=Error.TOPIC_ALREADY_EXISTS, if_missing=Error.NONE):
            assert topic_response is not None
            self.topic_id = topic_response.topic_id
            self.created += 1
            self.recreated += self._created_of_name > 0
            self._created_of_name += 1

    async def _delete(self) -> None:
        request = DeleteTopicsRequest(topics=(TopicToDelete(name=self.topic),), timeout_ms=TIMEOUT_MS)
        response: DeleteTopicsResponse | None = await self._call(request, DELETE_VERSION)
        code = None if response is None else response.topics[0].error_code
        if self._is_done(code, if_exists=Error.NONE, if_missing=Error.UNKNOWN_TOPIC_OR_PARTITION):
            self.topic_id = None

    async def _call(self, request: object, version: int) -> Any:
        host = self._router.any_host()
        controller = self._controller_of(host)
        response = await self._router.call(host, request, version)
        self._called_controller = controller is not None and self._controller_of(host) is controller
        return response

    def _is_done(self, code: int | None, *, if_exists: Error, if_missing: Error) -> bool:
        """Compare a response with what is known; returns whether the change was made.

        `if_exists` and `if_missing` are the responses that are due if the topic exists and if it does not.
        """
        due = if_missing if self.topic_id is None else if_exists
        if code == due:
            return code == 0
        if code == 0 or (code in (if_exists, if_missing) and self._called_controller):
            known = "does not exist" if self.topic_id is None else "exists"
            raise InvariantViolated(
                Invariant.CONTROLLER, f"topic {self.topic} {known}, but the response is {Error(code).name}"
            )
        if code is not None and not Error(code).retriable and code not in (if_exists, if_missing, *NOT_NOW):
            raise InvariantViolated(
                Invariant.CONTROLLER, f"topic {self.topic}: a change was refused with {Error(code).name}"
            )
        self._give_name_up()
        return False

    def _give_name_up(self) -> None:
        self._number += 1
        self.topic_id, self._created_of_name = None, 0
