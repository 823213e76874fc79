"""A client's way to the coordinator of one group or transactional id.

It is looked up with FindCoordinator at any broker, and again after a response that names the wrong coordinator.
"""

from typing import Any, Final

from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.wire.errors import Error
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

FIND_VERSION: Final = 4
GROUP_TYPE: Final = 0
TRANSACTION_TYPE: Final = 1
WRONG_COORDINATOR: Final = (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE)


class CoordinatorClient:
    def __init__(self, router: Router, key: str, key_type: int) -> None:
        self._router = router
        self._key = key
        self._key_type = key_type
        self._host: str | None = None

    async def call(self, request: object, version: int) -> Any | None:
        """Send a request once; None if no coordinator was found or it did not answer."""
        if self._host is None:
            self._host = await self._find()
        if self._host is None:
            return None
        answer = await self._router.call(self._host, request, version)
        if answer is None:
            self._host = None
        return answer

    def check_error(self, code: int) -> None:
        """Look the coordinator up again if the error code of a response says that it is another broker."""
        if code in WRONG_COORDINATOR:
            self._host = None

    async def _find(self) -> str | None:
        request = FindCoordinatorRequest(key_type=self._key_type, coordinator_keys=(self._key,))
        answer: FindCoordinatorResponse | None = await self._router.call_any(request, FIND_VERSION)
        if answer is None or answer.coordinators[0].error_code != 0:
            return None
        return answer.coordinators[0].host
