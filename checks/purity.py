"""The pure rooms: machines of events in and effects out, which know neither the loop nor the shell around them.

Raft, cluster metadata, groups, queues and transactions take time and chance as arguments. An import of asyncio, of a
port, of the log or of the broker in one of them means that a decision and its execution are about to mix.
Only what a file imports itself counts: `records` may know a type of `ports` that a pure room never sees.
"""

from typing import Final

from checks.finding import Finding
from checks.names import imported, within
from checks.tree import Source

PURE_ROOMS: Final = ("raft", "cluster", "groups", "queues", "transactions")
SHELL: Final = ("asyncio", "tailrace.ports", "tailrace.log", "tailrace.broker")


def knows_the_shell(source: Source) -> list[Finding]:
    if source.room not in PURE_ROOMS:
        return []
    return [
        Finding(
            source.path,
            line,
            f"the pure room {source.room}/ imports {name}",
            "Take the value as an argument, or return an effect that broker/ carries out.",
        )
        for line, name in imported(source.nodes)
        if any(within(name, out) for out in SHELL)
    ]
