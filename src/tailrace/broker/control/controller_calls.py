"""Calls to the controller: find out which broker it is, call it, and retry until it answers or the time is up."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.partitions.partition import Partition
from tailrace.broker.peers import Unreachable
from tailrace.model.faults import NotController, NotLeader, TimedOut
from tailrace.model.ids import NO_BROKER, BrokerId
from tailrace.ports import Clock
from tailrace.wire.faults import fault_of
from tailrace.wire.messages.peers.read_metadata_end import ReadMetadataEnd, ReadMetadataEndAnswer

RETRY_S: Final = 0.1
RECHECK_S: Final = 0.25  # during a call: how often to check whether another broker became the controller
CONTROLLER_TIMEOUT_S: Final = 10.0

Serve = Callable[[BrokerId, object], Awaitable[object]]  # the sender, and its request
CallPeer = Callable[[BrokerId, object, float], Awaitable[Any]]


class ControllerCalls:
    def __init__(
        self, role: ControllerRole, metadata: Partition, call_peer: CallPeer, serve: Serve, clock: Clock
    ) -> None:
        self._role = role
        self._metadata = metadata
        self._call_peer = call_peer
        self._serve = serve  # used when this broker is the controller itself
        self._clock = clock

    @property
    def _controller(self) -> BrokerId:
        return self._role.controller or NO_BROKER

    async def ask(self, request: object, timeout_s: float = CONTROLLER_TIMEOUT_S) -> Any:
        deadline = self._clock.monotonic() + timeout_s
        while True:
            try:
                return await self._ask_once(request, max(0.1, deadline - self._clock.monotonic()))
            except (NotController, NotLeader, Unreachable) as error:
                if self._no_controller_possible():
                    raise NotController(
                        "no controller: this broker is the only metadata voter, and cannot lead before a restart"
                    ) from error
                if self._clock.monotonic() + RETRY_S >= deadline:
                    raise TimedOut(f"the controller did not answer within {timeout_s:g} s: {error}") from error
            await asyncio.sleep(RETRY_S)

    async def metadata_end(self) -> int:
        """Where the metadata log ends now. Who has applied it up to there knows all changes that have been answered."""
        answer: ReadMetadataEndAnswer = await self.ask(ReadMetadataEnd())
        return answer.end

    def _no_controller_possible(self) -> bool:
        """Whether there is no controller until a restart: this broker is the only voter, and will not lead again."""
        metadata = self._metadata
        will_not_lead = metadata.offline is not None or metadata.replica.retired
        return will_not_lead and metadata.replica.voters == (metadata.me,)

    async def _ask_once(self, request: object, timeout_s: float) -> Any:
        controller = self._controller
        if controller == NO_BROKER:
            raise NotController("the controller is not known")
        if controller == self._metadata.me.broker:
            return await self._serve(controller, request)
        answer = await self._call_while_it_leads(controller, request, timeout_s)
        fault = fault_of(answer.error_code, answer.error_message or "")
        if isinstance(fault, NotController | NotLeader):
            raise NotController(f"broker {controller} is not the controller", BrokerId(answer.controller))
        if fault is not None:
            raise fault
        return answer

    async def _call_while_it_leads(self, controller: BrokerId, request: object, timeout_s: float) -> Any:
        """Call the controller, but give up as soon as another one is known: the called broker may be paused."""
        task = asyncio.ensure_future(self._call_peer(controller, request, timeout_s))
        try:
            while True:
                try:
                    async with asyncio.timeout(RECHECK_S):
                        return await asyncio.shield(task)
                except TimeoutError:
                    if self._controller not in (controller, NO_BROKER):
                        raise Unreachable(f"broker {controller} is no longer the controller") from None
        finally:
            task.cancel()
