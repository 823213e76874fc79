"""Asking the controller, whichever broker that is, until it answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Unreachable
from tailrace.model.faults import NotController, NotLeader, RefusedElsewhere, TimedOut
from tailrace.model.ids import NOBODY, BrokerId
from tailrace.ports import Clock
from tailrace.wire.errors import Error

ASK_AGAIN_S: Final = 0.1
LOOK_S: Final = 0.25  # between two looks for another controller, while one is asked
CONTROLLER_TIMEOUT_S: Final = 10.0

Serve = Callable[[BrokerId, object], Awaitable[object]]  # a peer's request, and who sent it
CallPeer = Callable[[BrokerId, object, float], Awaitable[Any]]


class ControllerCalls:
    def __init__(
        self, role: ControllerRole, metadata: Partition, call_peer: CallPeer, serve: Serve, clock: Clock
    ) -> None:
        self._role = role
        self._metadata = metadata
        self._call_peer = call_peer
        self._serve = serve  # where this broker is the controller
        self._clock = clock

    @property
    def _controller(self) -> BrokerId:
        return self._role.controller or NOBODY

    async def ask(self, request: object, timeout_s: float = CONTROLLER_TIMEOUT_S) -> Any:
        deadline = self._clock.monotonic() + timeout_s
        while True:
            try:
                return await self._ask_once(request, max(0.1, deadline - self._clock.monotonic()))
            except (NotController, NotLeader, Unreachable) as error:
                if self._is_hopeless():
                    raise NotController(
                        "this broker is the only one that could be the controller, and cannot"
                    ) from error
                if self._clock.monotonic() + ASK_AGAIN_S >= deadline:
                    raise TimedOut(f"the controller could not be reached: {error}") from error
            await asyncio.sleep(ASK_AGAIN_S)

    def _is_hopeless(self) -> bool:
        """Whether there will be no controller until a restart: the only voter is here, and will not lead again."""
        metadata = self._metadata
        will_not_lead = metadata.offline is not None or metadata.replica.retired
        return will_not_lead and metadata.replica.voters == (metadata.me,)

    async def _ask_once(self, request: object, timeout_s: float) -> Any:
        controller = self._controller
        if controller == NOBODY:
            raise NotController("no controller is known")
        if controller == self._metadata.me.broker:
            return await self._serve(controller, request)
        answer = await self._call_while_it_leads(controller, request, timeout_s)
        if answer.error_code == Error.NOT_CONTROLLER or answer.error_code == Error.NOT_LEADER_OR_FOLLOWER:
            raise NotController(f"broker {controller} is not the controller", BrokerId(answer.controller))
        if answer.error_code:
            raise RefusedElsewhere(answer.error_message or "", answer.error_code)
        return answer

    async def _call_while_it_leads(self, controller: BrokerId, request: object, timeout_s: float) -> Any:
        """Give a call up once another controller is known: the one that was called may be paused."""
        task = asyncio.ensure_future(self._call_peer(controller, request, timeout_s))
        try:
            while True:
                try:
                    async with asyncio.timeout(LOOK_S):
                        return await asyncio.shield(task)
                except TimeoutError:
                    if self._controller not in (controller, NOBODY):
                        raise Unreachable(f"broker {controller} is not the controller any more") from None
        finally:
            task.cancel()
