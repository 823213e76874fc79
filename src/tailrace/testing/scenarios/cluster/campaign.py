"""Runs many seeds in several processes: one line per seed, then what they exercised together.

The line of a failed seed names the invariant that was violated and what was observed. Seeds in which little happened
prove little, so the campaign fails too if its coverage is too low: each full block of a hundred seeds is judged by
itself, and all seeds together.
"""

import logging
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context

from tailrace.model.frozen import frozen
from tailrace.testing.scenarios.cluster.coverage import SEEDS_PER_BLOCK, Coverage
from tailrace.testing.scenarios.cluster.invariants.invariants import InvariantViolated
from tailrace.testing.scenarios.cluster.plan import plan_for
from tailrace.testing.scenarios.cluster.scenario import run_cluster


@frozen
class Run:
    """The result of one seed."""

    seed: int
    coverage: Coverage
    digest: str  # empty if the seed failed
    core_seconds: float
    failure: str = ""  # the first line says what failed, the others give details

    def __str__(self) -> str:
        plan = plan_for(self.seed)
        setup = f"{plan.brokers} brokers, fsync {plan.fsync}"
        if self.failure:
            return f"seed {self.seed} FAILED ({setup}): {self.failure}"
        seconds = f"{self.coverage.seconds:.0f} s in {self.core_seconds:.2f} s"
        return f"seed {self.seed} {self.digest} ({setup}; {seconds})"


@dataclass(slots=True)
class Campaign:
    """The results of all seeds so far."""

    seeds: int = 0
    failed: list[int] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    core_seconds: float = 0.0  # of all processes together
    began: float = field(default_factory=time.monotonic)
    wall_seconds: float = 0.0
    block_shortfalls: list[str] = field(default_factory=list)  # of full blocks whose coverage was too low
    _block: list[Run] = field(default_factory=list)  # the block that is being filled, in the order of the seeds

    def add(self, run: Run) -> None:
        self.seeds += 1
        self.core_seconds += run.core_seconds
        self.wall_seconds = time.monotonic() - self.began
        self.coverage.add(run.coverage)
        if run.failure:
            self.failed.append(run.seed)
        self._block.append(run)
        if len(self._block) == SEEDS_PER_BLOCK:
            self._judge_block()

    def _judge_block(self) -> None:
        block, self._block = self._block, []
        coverage = Coverage()
        for run in block:
            coverage.add(run.coverage)
        seeds = f"seeds {block[0].seed} to {block[-1].seed}"
        self.block_shortfalls += [f"{seeds}: {shortfall}" for shortfall in coverage.shortfalls(len(block))]

    @property
    def shortfalls(self) -> list[str]:
        """What all seeds, or one block of them, should have exercised more often."""
        return self.block_shortfalls + self.coverage.shortfalls(self.seeds)

    @property
    def passed(self) -> bool:
        return not self.failed and not self.shortfalls

    def __str__(self) -> str:
        per_core = self.coverage.seconds / self.core_seconds if self.core_seconds else 0.0
        per_wall = self.coverage.seconds / self.wall_seconds if self.wall_seconds else 0.0
        lines = [
            f"{self.seeds} seeds, {len(self.failed)} failed; coverage: {self.coverage}",
            f"virtual to wall time: {per_wall:.1f} to 1, in {self.wall_seconds:.0f} s; "
            f"to core time: {per_core:.1f} to 1, {self.core_seconds / max(1, self.seeds):.2f} s of a core per seed",
        ]
        return "\n".join(lines + self.shortfalls)


def run_seed(seconds: float, seed: int) -> Run:
    """Run one seed; an exception becomes a failed `Run`."""
    began = time.process_time()
    try:
        result = run_cluster(seed, seconds)
    except Exception as error:
        took = time.process_time() - began
        return Run(seed=seed, coverage=Coverage(), digest="", core_seconds=took, failure=describe_failure(error))
    took = time.process_time() - began
    return Run(seed=seed, coverage=result.coverage, digest=result.digest, core_seconds=took)


def run_seeds(seeds: Iterable[int], seconds: float, workers: int) -> Iterator[Run]:
    """Run all seeds, and yield the results in their order; a single worker is this process itself."""
    if workers <= 1:
        yield from map(partial(run_seed, seconds), seeds)
        return
    # spawned, because a forked worker would inherit locks that a thread of this process may hold
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=logging.disable) as pool:
        yield from pool.map(partial(run_seed, seconds), seeds, chunksize=2)


def describe_failure(error: BaseException) -> str:
    """The violated invariant and its notes; for any other exception its traceback."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InvariantViolated):
        cause = cause.__cause__
    if cause is None:
        return f"{error!r}\n{''.join(traceback.format_exception(error))}".rstrip()
    notes = getattr(cause, "__notes__", []) + (getattr(error, "__notes__", []) if error is not cause else [])
    details = "\n".join(f"  {note}" for note in notes)
    return f"{cause}\n{details}".rstrip()
