"""How handlers change the cluster: several requests in one, each answered on its own."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from tailrace.cluster.controller import Controller, try_each
from tailrace.doors.kafka.call import Call
from tailrace.model.faults import Fault
from tailrace.model.proposal import Proposal

T = TypeVar("T")


async def change_each(
    call: Call, changes: Sequence[Callable[[Controller], Proposal[T]]], *, validate_only: bool = False
) -> list[T | Fault]:
    """Let the controller decide on each, and commit what it agrees to; the partitions follow before this returns.

    The changes must not depend on each other. When the metadata log itself fails, that is the answer to all."""
    if not changes:
        return []

    def propose(controller: Controller) -> Proposal[list[T | Fault]]:
        each = try_each([partial(change, controller) for change in changes])
        return Proposal(each.answer) if validate_only else each

    try:
        answers = await call.node.controller.write(propose)
    except Fault as fault:
        return [fault for _ in changes]
    await call.node.settled()
    return answers


def repeated(names: Iterable[T]) -> dict[T, None]:
    """What is named more than once, each in its first place; quick to look up, as there may be very many."""
    counts: dict[T, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return {name: None for name, count in counts.items() if count > 1}
