"""Many seeds, in several processes: one line each, then what they met together.

A seed that fails says which invariant broke, what was seen, and how to see it again. A hundred seeds under which little
happened prove little, so they fail, too: each full hundred by itself, whatever the others met, and all together.
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
    """One seed's outcome."""

    seed: int
    coverage: Coverage
    digest: str  # empty when it failed
    seconds: float  # of a core
    failure: str = ""  # the first line says what, the others where

    def __str__(self) -> str:
        plan = plan_for(self.seed)
        told = f"{plan.brokers} brokers, fsync {plan.fsync}"
        if self.failure:
            return f"seed {self.seed} FAILED ({told}): {self.failure}"
        return f"seed {self.seed} {self.digest} ({told}; {self.coverage.seconds:.0f} s in {self.seconds:.2f} s)"


@dataclass(slots=True)
class Campaign:
    """What all runs came to."""

    seeds: int = 0
    failed: list[int] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    seconds: float = 0.0  # of cores, all processes together
    began: float = field(default_factory=time.monotonic)
    lasted: float = 0.0  # seconds on the wall, so far
    poor_blocks: list[str] = field(default_factory=list)  # what each full hundred that met too little lacks
    _block: list[Run] = field(default_factory=list)  # the hundred that is being filled, as the seeds come

    def add(self, run: Run) -> None:
        self.seeds += 1
        self.seconds += run.seconds
        self.lasted = time.monotonic() - self.began
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
        where = f"seeds {block[0].seed} to {block[-1].seed}"
        self.poor_blocks += [f"{where}: {one}" for one in coverage.shortfalls(len(block))]

    @property
    def shortfalls(self) -> list[str]:
        """What should have been met in so many seeds, or in a hundred of them, and was not."""
        return self.poor_blocks + self.coverage.shortfalls(self.seeds)

    @property
    def passed(self) -> bool:
        return not self.failed and not self.shortfalls

    def __str__(self) -> str:
        of_core = self.coverage.seconds / self.seconds if self.seconds else 0.0
        of_wall = self.coverage.seconds / self.lasted if self.lasted else 0.0
        lines = [
            f"{self.seeds} seeds, {len(self.failed)} failed; they met {self.coverage}",
            f"virtual to wall time: {of_wall:.1f} to 1, in {self.lasted:.0f} s; to core time: {of_core:.1f} to 1, "
            f"{self.seconds / max(1, self.seeds):.2f} s of a core each",
        ]
        return "\n".join(lines + self.shortfalls)


def run_seed(seconds: float, seed: int) -> Run:
    """One seed, and how it ended."""
    began = time.process_time()
    try:
        outcome = run_cluster(seed, seconds)
    except Exception as error:
        took = time.process_time() - began
        return Run(seed=seed, coverage=Coverage(), digest="", seconds=took, failure=describe_failure(error))
    return Run(seed=seed, coverage=outcome.coverage, digest=outcome.digest, seconds=time.process_time() - began)


def run_seeds(seeds: Iterable[int], seconds: float, workers: int) -> Iterator[Run]:
    """In the order of the seeds; a single worker is this process."""
    if workers <= 1:
        yield from map(partial(run_seed, seconds), seeds)
        return
    # forked workers would share locks that some thread of ours holds
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=logging.disable) as pool:
        yield from pool.map(partial(run_seed, seconds), seeds, chunksize=2)


def describe_failure(error: BaseException) -> str:
    """What broke, first; then where."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, InvariantViolated):
        cause = cause.__cause__
    if cause is None:
        return f"{error!r}\n{''.join(traceback.format_exception(error))}".rstrip()
    notes = getattr(cause, "__notes__", []) + (getattr(error, "__notes__", []) if error is not cause else [])
    where = "\n".join(f"  {note}" for note in notes)
    return f"{cause}\n{where}".rstrip()
