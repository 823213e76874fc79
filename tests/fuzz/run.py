"""`python -m tests.fuzz.run --frames 100000 --seed 1`: shoot, watch, and say what came of it. Exits 1 with a finding.

What must hold all along: the broker lives, a client beside is answered in time, memory stays within its bounds. And
afterwards: no connection is left over, the broker's log shows no failure of its own, every log on disk is whole, and a
restart finds all of it.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tailrace.testing import Broker
from tests.fuzz import control, target
from tests.fuzz.control import Control
from tests.fuzz.guard import Guard
from tests.fuzz.plan import UNMUTATED, Plan
from tests.fuzz.requests import EVERY_REQUEST, PARTITIONS_EACH, World
from tests.fuzz.senders import Tally, send_all

MiB: Final = 1024 * 1024
GROWTH_MAX_BYTES: Final = 64 * MiB  # after the warm-up
PEAK_MAX_BYTES: Final = 256 * MiB
WARM_UP_SHARE: Final = 0.2
MUTATED_SHARE_MIN: Final = 0.8
LASTING: Final = [f"lasting-{number}" for number in range(4)]
FLEETING: Final = [f"fleeting-{number}" for number in range(6)]


@dataclass(slots=True)
class Outcome:
    tally: Tally = field(default_factory=Tally)
    dropped: int = 0
    rounds: int = 0  # of the client beside
    slowest_s: float = 0.0
    warm_bytes: int = 0
    end_bytes: int = 0
    peak_bytes: int = 0
    findings: list[str] = field(default_factory=list)

    @property
    def mutated(self) -> int:
        return sum(count for kind, count in self.tally.kinds.items() if kind not in UNMUTATED)

    def require(self, condition: bool, finding: str) -> None:
        if not condition:
            self.findings.append(finding)


async def fuzz(broker: Broker, seed: int, frames: int, connections: int, tell: Callable[[int], None]) -> Outcome:
    """All of it against a broker that runs; it runs again at the end."""
    outcome = Outcome()
    client = await Control.connect(broker.port)
    ids = await client.make_topics([control.TOPIC, *LASTING], PARTITIONS_EACH)
    await client.make_topics(FLEETING, PARTITIONS_EACH)
    world = World(topics={name: ids[name] for name in LASTING}, fleeting=FLEETING, broker_id=await client.broker_id())
    guard = Guard(lasting=[control.TOPIC, *LASTING], lasting_ids=list(ids.values()), fleeting=FLEETING)
    plan = Plan(world, guard, seed)
    sockets_before = target.sockets(broker.pid)
    beside = asyncio.create_task(client.run())
    try:
        await _shoot(broker, plan, frames, connections, outcome, beside, tell)
        await target.until_sockets(broker.pid, sockets_before)
    finally:
        client.stopping = True
        await beside
    client.close()
    outcome.dropped, outcome.rounds, outcome.slowest_s = plan.dropped, client.rounds, client.slowest_s
    outcome.end_bytes, outcome.peak_bytes = target.resident_bytes(broker.pid), target.peak_bytes(broker.pid)
    _judge(outcome, frames)
    await _judge_what_stays(broker, outcome)
    return outcome


async def _shoot(
    broker: Broker,
    plan: Plan,
    frames: int,
    connections: int,
    outcome: Outcome,
    beside: "asyncio.Task[None]",
    tell: Callable[[int], None],
) -> None:
    shots, tally = plan.shots(), outcome.tally
    portion = max(500, frames // 100)
    while tally.frames < frames:
        await send_all(broker.port, shots, min(portion, frames - tally.frames), connections, tally)
        if beside.done():
            beside.result()
        if not outcome.warm_bytes and tally.frames >= WARM_UP_SHARE * frames:
            outcome.warm_bytes = target.resident_bytes(broker.pid)
        tell(tally.frames)


def _judge(outcome: Outcome, frames: int) -> None:
    growth = outcome.end_bytes - outcome.warm_bytes
    outcome.require(outcome.mutated >= MUTATED_SHARE_MIN * frames, f"only {outcome.mutated} frames were mutated")
    outcome.require(growth <= GROWTH_MAX_BYTES, f"memory grew by {growth / MiB:.0f} MiB after the warm-up")
    outcome.require(outcome.peak_bytes <= PEAK_MAX_BYTES, f"memory reached {outcome.peak_bytes / MiB:.0f} MiB")
    missing = [one for one in EVERY_REQUEST if one not in outcome.tally.covered]
    outcome.require(frames < 10 * len(EVERY_REQUEST) or not missing, f"never sent: API and version {missing}")


async def _judge_what_stays(broker: Broker, outcome: Outcome) -> None:
    broker.stop()
    outcome.findings += [f"on disk: {problem}" for problem in target.damage_in(broker.data_dir)]
    broker.start()
    client = await Control.connect(broker.port)
    try:
        await client.go_on_from(outcome.rounds)
        await client.round_trip()
    finally:
        client.close()
    outcome.findings += [f"in the broker's log:\n{text}" for text in target.failures_in(broker.log)]


def summary(outcome: Outcome) -> Table:
    tally = outcome.tally
    table = Table("what", "how many", title=f"{tally.frames} frames, {len(outcome.findings)} findings")
    for group in (sorted(tally.fates.items()), sorted(tally.kinds.items())):
        for name, count in group:
            table.add_row(name, str(count))
        table.add_section()
    table.add_row("mutated", f"{outcome.mutated} ({outcome.mutated / max(tally.frames, 1):.0%})")
    table.add_row("APIs by version", f"{len(tally.covered)} of {len(EVERY_REQUEST)}")
    table.add_row("connections", str(tally.connections))
    table.add_row("kept back by the guard", str(outcome.dropped))
    table.add_row("round trips beside", f"{outcome.rounds}, slowest {outcome.slowest_s * 1000:.0f} ms")
    memory = [outcome.warm_bytes, outcome.end_bytes, outcome.peak_bytes]
    table.add_row("MiB resident: warm, end, peak", " ".join(f"{one / MiB:.0f}" for one in memory))
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--connections", type=int, default=8)
    given = parser.parse_args()
    console = Console(stderr=not sys.stdout.isatty())
    with target.make_broker() as broker, Progress(console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task(f"seed {given.seed}", total=given.frames)

        def tell(frames: int) -> None:
            progress.update(bar, completed=frames)

        outcome = asyncio.run(fuzz(broker, given.seed, given.frames, given.connections, tell))
    console.print(summary(outcome))
    for finding in outcome.findings:
        console.print(f"finding: {finding}", markup=False)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
