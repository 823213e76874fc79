"""The purity rule: pure rooms are state machines, events in and effects out, without event loop or I/O.

Raft, cluster metadata, groups, queues and transactions take time and randomness as arguments. An import of asyncio, of
a port, of the log or of the broker in one of them would mix decisions with their execution.
Only direct imports count: `records` may use a type of `ports` that a pure room never sees.
"""

from typing import Final

from checks.finding import Finding
from checks.names import imported, within
from checks.tree import Source

PURE_ROOMS: Final = ("raft", "cluster", "groups", "queues", "transactions")
IMPURE: Final = ("asyncio", "tailrace.ports", "tailrace.log", "tailrace.broker")


def impure_imports(source: Source) -> list[Finding]:
    if source.room not in PURE_ROOMS:
        return []
    return [
        Finding(
            source.path,
            line,
            f"the pure room {source.room}/ imports {name}",
            "Take the value as an argument, or return an effect that broker/ executes.",
        )
        for line, name in imported(source.nodes)
        if any(within(name, impure) for impure in IMPURE)
    ]
