"""One run of a cluster: brokers start, clients work while faults are injected, all is healed, the cluster converges.

The replicas of all brokers are observed every few virtual milliseconds and before every crash. A violated invariant, an
unexpected exception or a failure to converge ends the run.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from tailrace.testing.scenarios.cluster.clients.clients import Clients
from tailrace.testing.scenarios.cluster.coverage import Coverage
from tailrace.testing.scenarios.cluster.faults.schedule import FaultSchedule
from tailrace.testing.scenarios.cluster.invariants.convergence import Convergence, describe_replicas
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.observer import OBSERVE_EVERY_SECONDS, ClusterObserver, partitions_of
from tailrace.testing.scenarios.cluster.plan import FAULTS_DEFAULT_SECONDS, Plan, plan_for
from tailrace.testing.scenarios.cluster.server import Server
from tailrace.testing.simulation import World
from tailrace.testing.simulation.storage import CAPACITY_DEFAULT_BYTES

CONVERGE_MAX_SECONDS: Final = 30.0
CONVERGE_CHECK_SECONDS: Final = 0.05
SECONDS_MAX: Final = 3600.0
STEPS_MAX: Final = 300_000  # and as many for each minute of faults: about ten times what a run needs


class RunResult(NamedTuple):
    coverage: Coverage
    digest: str


class ClusterScenario:
    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._servers: list[Server] = []
        self._coverage = Coverage()
        self._observer = ClusterObserver(self._servers, world.loop.time)
        self._clients = Clients(world, plan, self._servers, self._observer, raise_failure)
        self._convergence = Convergence(self._servers, self._observer)

    async def run(self) -> Coverage:
        for _ in range(self._plan.brokers - self._plan.late_joiners):
            await self._join()
            await self._converge("a broker joined")
        await self._clients.begin()
        observing = self._in_background(self._keep_observing())
        faults = FaultSchedule(
            self._world, self._plan, self._servers, self._observer, self._coverage, self._in_background
        )
        await faults.run([self._join for _ in range(self._plan.late_joiners)])
        await faults.heal()
        self._clients.end()
        await self._converge("healing", clients=True)
        observing.cancel()
        self._convergence.compare()
        self._clients.check()
        self._count()
        return self._coverage

    async def _join(self) -> None:
        """Start another broker; the first one forms the cluster."""
        join = ",".join(server.address for server in self._servers[:3])
        server = Server(self._world, len(self._servers) + 1, self._plan, join)
        server.observer = self._observer
        server.machine.storage.on_truncate = partial(self._count_truncation, server)
        self._servers.append(server)
        self._coverage.joins += len(self._servers) > 1
        self._in_background(server.start())

    async def _converge(self, after: str, *, clients: bool = False) -> None:
        """Wait until the cluster has converged; with `clients`, until they have finished what they began, too."""
        deadline = self._world.loop.time() + CONVERGE_MAX_SECONDS
        while obstacle := (clients and self._clients.busy) or self._convergence.obstacle():
            if self._world.loop.time() >= deadline:
                violated = InvariantViolated(
                    Invariant.CONVERGES, f"{CONVERGE_MAX_SECONDS:.0f} s after {after}: {obstacle}"
                )
                for line in describe_replicas(self._servers):
                    violated.add_note(line)
                raise violated
            await asyncio.sleep(CONVERGE_CHECK_SECONDS)
            self._observer.observe_all()

    async def _keep_observing(self) -> None:
        while True:
            self._observer.observe_all()
            await asyncio.sleep(OBSERVE_EVERY_SECONDS)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run a coroutine in the background; if it fails, the run fails."""
        task = self._world.loop.create_task(work)
        task.add_done_callback(raise_failure)
        return task

    def _count_truncation(self, server: Server, path: str) -> None:
        """A segment is about to become shorter.

        If a replica has it open, a follower truncates it to match its leader; otherwise recovery cuts off a torn tail.
        """
        storage = server.machine.storage
        if not path.endswith(".log") or storage.capacity_bytes != CAPACITY_DEFAULT_BYTES:
            return  # it may be the rest of a write that did not fit on the full disk
        if any(path.startswith(f"{one.log.folder}/") for one in partitions_of(server)):
            self._coverage.truncations += 1
        else:
            self._coverage.torn_tails += 1

    def _count(self) -> None:
        coverage = self._coverage
        coverage.leader_changes = self._observer.leaders.changes
        coverage.voter_changes = self._observer.voter_changes
        coverage.refused_starts = sum(server.refused_starts for server in self._servers)
        coverage.committed_batches = len(self._observer.histories)
        compacted = self._observer.compacted
        coverage.swaps, coverage.begun_anew = compacted.swaps, compacted.begun_anew.total()
        coverage.tombstones_removed = compacted.tombstones_removed
        coverage.seconds = self._world.loop.time()
        self._clients.count(coverage)


def raise_failure(task: "asyncio.Task[Any]") -> None:
    """As a task's callback: fail the run at once if the task failed."""
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


def run_cluster(seed: int, seconds: float = FAULTS_DEFAULT_SECONDS) -> RunResult:
    """Run one seed, with faults for `seconds` virtual seconds."""
    plan = plan_for(seed, seconds)
    with _world(plan) as world:
        coverage = world.run(ClusterScenario(world, plan).run())
        return RunResult(coverage, world.digest)


def trace_cluster(seed: int, seconds: float = FAULTS_DEFAULT_SECONDS) -> Iterator[str]:
    """Run one seed and yield its history, line by line; raises what ended the run, after the last line."""
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
        steps_max=STEPS_MAX + int(plan.fault_seconds / 60 * STEPS_MAX),
        seconds_max=SECONDS_MAX + plan.fault_seconds,
    )
