"""How a client talks to its coordinator: it finds it through any broker, and looks anew when it was the wrong one."""

from typing import Any, Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

FIND_VERSION: Final = 4
GROUP_TYPE: Final = 0
TRANSACTION_TYPE: Final = 1
WRONG_COORDINATOR: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)


class CoordinatorClient:
    """The way to the coordinator of one key."""

    def __init__(self, router: Router, key: str, key_type: int) -> None:
        self._router = router
        self._key = key
        self._key_type = key_type
        self._host: str | None = None

    async def ask(self, request: object, version: int) -> Any | None:
        """One attempt; None: nobody was found, or did not answer."""
        if self._host is None:
            self._host = await self._find()
        if self._host is None:
            return None
        answer = await self._router.ask(self._host, request, version)
        if answer is None:
            self._host = None
        return answer

    def told(self, code: int) -> None:
        """What the answer said: it may be that another broker has to be asked."""
        if code in WRONG_COORDINATOR:
            self._host = None

    async def _find(self) -> str | None:
        request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=(self._key,))
        answer: FindCoordinatorResponse | None = await self._router.ask_anyone(request, FIND_VERSION)
        if answer is None or answer.coordinators[0].error_code != 0:
            return None
        return answer.coordinators[0].host
