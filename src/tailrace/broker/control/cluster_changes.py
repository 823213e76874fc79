"""Changes of the cluster metadata by the controller on this broker: one request may hold several, each has a result."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from tailrace.broker.control.controller import ControllerRole
from tailrace.broker.metadata.progress import MetadataProgress
from tailrace.cluster.controller import Controller, try_each
from tailrace.model.faults import Fault
from tailrace.model.proposal import Proposal

T = TypeVar("T")


class ClusterChanges:
    def __init__(self, controller: ControllerRole, progress: MetadataProgress) -> None:
        self._controller = controller
        self._progress = progress

    @property
    def are_made_here(self) -> bool:
        """Whether this broker is the controller."""
        return self._controller.runtime is not None

    async def each(
        self, changes: Sequence[Callable[[Controller], Proposal[T]]], *, validate_only: bool = False
    ) -> list[T | Fault]:
        """Let the controller decide on each change, and commit the accepted ones. When this returns, the partitions
        hosted on this broker match the committed metadata.

        The changes must not depend on each other. If the metadata log itself fails, every result is that fault."""
        if not changes:
            return []

        def propose(controller: Controller) -> Proposal[list[T | Fault]]:
            each = try_each([partial(change, controller) for change in changes])
            return Proposal(each.answer) if validate_only else each

        try:
            answers = await self._controller.active.write(propose)
        except Fault as fault:
            return [fault for _ in changes]
        await self._progress.settled()
        return answers
