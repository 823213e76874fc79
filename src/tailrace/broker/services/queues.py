"""Share groups (KIP-932): queues on topics."""

from tailrace.broker.queues.state_coordinator import ShareCoordinator
from tailrace.model.caller import Caller
from tailrace.model.faults import InvalidRequest
from tailrace.model.ids import BrokerId
from tailrace.queues.state import ShareKey


class Queues:
    def __init__(self, coordinator: ShareCoordinator) -> None:
        self._coordinator = coordinator

    async def find_coordinator(self, who: Caller, key: str) -> BrokerId:
        """The broker with the state of a share partition, which is named `group:topic id:partition`."""
        try:
            share = ShareKey.parse(key)
        except ValueError:
            raise InvalidRequest(f"Invalid share partition {key!r}, expected group:topicId:partition.") from None
        broker, _ = await self._coordinator.place(share)
        return broker
