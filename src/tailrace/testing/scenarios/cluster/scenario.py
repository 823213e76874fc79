"""One seed's story: a cluster comes up, clients work, trouble comes, all is healed, and everything is right again."""

import asyncio
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from tailrace.testing.scenarios.cluster.clients.clients import Clients
from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.schedule import FaultSchedule
from tailrace.testing.scenarios.cluster.invariants.convergence import Convergence, described
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observer import LOOK_EVERY_SECONDS, ClusterObserver, partitions_of
from tailrace.testing.scenarios.cluster.plan import FAULTS_DEFAULT_SECONDS, Plan, plan_for
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World
from tailrace.testing.simulation.storage import CAPACITY_DEFAULT_BYTES

CONVERGE_MAX_SECONDS: Final = 30.0
CONVERGE_LOOK_SECONDS: Final = 0.05
SECONDS_MAX: Final = 3600.0
STEPS_MAX: Final = 300_000  # and as many for each minute of trouble: a story takes a tenth of that


class RunResult(NamedTuple):
    coverage: Coverage
    digest: str


class ClusterScenario:
    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._servers: list[Server] = []
        self._coverage = Coverage()
        self._watch = ClusterObserver(self._servers)
        self._clients = Clients(world, plan, self._servers, self._watch, raise_failure)
        self._convergence = Convergence(self._servers, self._watch)

    async def run(self) -> Coverage:
        for _ in range(self._plan.brokers - self._plan.late):
            await self._join()
            await self._settle("a broker joined")
        await self._clients.begin()
        watching = self._beside(self._keep_looking())
        trouble = FaultSchedule(self._world, self._plan, self._servers, self._watch, self._coverage, self._beside)
        await trouble.run([self._join for _ in range(self._plan.late)])
        await trouble.heal()
        self._clients.end()
        await self._settle("healing", clients=True)
        watching.cancel()
        self._convergence.compare()
        self._clients.check()
        self._count()
        return self._coverage

    async def _join(self) -> None:
        """Another broker; the first one is the cluster."""
        join = ",".join(server.address for server in self._servers[:3])
        server = Server(self._world, len(self._servers) + 1, self._plan, join)
        server.witness = self._watch
        server.machine.storage.on_truncate = partial(self._log_cut, server)
        self._servers.append(server)
        self._coverage.joins += len(self._servers) > 1
        self._beside(server.start())

    async def _settle(self, what: str, *, clients: bool = False) -> None:
        """Wait until nothing stands in the way any more; clients, too, have to be done with what they began."""
        deadline = self._world.loop.time() + CONVERGE_MAX_SECONDS
        while obstacle := (clients and self._clients.busy) or self._convergence.obstacle():
            if self._world.loop.time() >= deadline:
                broken = InvariantViolated(
                    Invariant.CONVERGES, f"{CONVERGE_MAX_SECONDS:.0f} s after {what}: {obstacle}"
                )
                for line in described(self._servers):
                    broken.add_note(line)
                raise broken
            await asyncio.sleep(CONVERGE_LOOK_SECONDS)
            self._watch.look()

    async def _keep_looking(self) -> None:
        while True:
            self._watch.look()
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def _beside(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run something beside the story; if it fails, so does the run."""
        task = self._world.loop.create_task(work)
        task.add_done_callback(raise_failure)
        return task

    def _log_cut(self, server: Server, path: str) -> None:
        """A segment became shorter: while a replica has it open it was truncated, before that its tail was torn."""
        storage = server.machine.storage
        if not path.endswith(".log") or storage.capacity_bytes != CAPACITY_DEFAULT_BYTES:
            return  # after a write that did not fit
        if any(path.startswith(f"{one.log.folder}/") for one in partitions_of(server)):
            self._coverage.truncations += 1
        else:
            self._coverage.torn_tails += 1

    def _count(self) -> None:
        coverage = self._coverage
        coverage.leader_changes = self._watch.leaders.changes
        coverage.voter_changes = self._watch.voter_changes
        coverage.refused_starts = sum(server.refused for server in self._servers)
        coverage.committed = len(self._watch.histories)
        coverage.seconds = self._world.loop.time()
        self._clients.count(coverage)


def raise_failure(task: "asyncio.Task[Any]") -> None:
    """Let a failure fail the run at once, wherever it happened."""
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


def run_cluster(seed: int, seconds: float = FAULTS_DEFAULT_SECONDS) -> RunResult:
    """One seed: what it met, and the digest of its history."""
    plan = plan_for(seed, seconds)
    with _world(plan) as world:
        coverage = world.run(ClusterScenario(world, plan).run())
        return RunResult(coverage, world.digest)


def trace_cluster(seed: int, seconds: float = FAULTS_DEFAULT_SECONDS) -> Iterator[str]:
    """One seed's history, line by line; it ends with what broke, if something does."""
    plan = plan_for(seed, seconds)
    with _world(plan, keep_lines=True) as world:
        try:
            world.run(ClusterScenario(world, plan).run())
        finally:
            yield from world.lines


def _world(plan: Plan, *, keep_lines: bool = False) -> World:
    return World(
        plan.seed,
        odds=plan.odds,
        keep_lines=keep_lines,
        steps_max=STEPS_MAX + int(plan.seconds / 60 * STEPS_MAX),
        seconds_max=SECONDS_MAX + plan.seconds,
    )
