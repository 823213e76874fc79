"""Tests the simulator: it must find every planted bug within 200 seeds. `python -m tests.simulation.mutants`.

`mutants.toml` holds for each bug a seed that finds it quickly; every run of the tests replays those. Histories change
with the code, so a recorded seed may stop finding its bug: `--record` searches again and writes the file.
"""

import argparse
import logging
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from tailrace.testing.scenarios.cluster.campaign import Run, run_seed
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tailrace.testing.scenarios.cluster.plan import FAULTS_DEFAULT_SECONDS
from tests.simulation.planted import MUTANTS

recorded = Path(__file__).with_name("mutants.toml")
SEEDS_MAX = 200
QUICK_SECONDS = 1.5  # of a core: what a recorded seed should take at most
HEADLINE = "# Planted bugs, each with a seed that finds it; made by `python -m tests.simulation.mutants --record`.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """The result of the search for one bug."""

    name: str
    tried: int
    found: Run | None
    seconds: float

    def __str__(self) -> str:
        if self.found is None:
            return f"{self.name}: NOT FOUND in {self.tried} seeds, {self.seconds:.0f} s"
        what = self.found.failure.splitlines()[0]
        return f"{self.name}: seed {self.found.seed} ({self.found.core_seconds:.1f} s, {self.tried} tried): {what}"


def recorded_seeds() -> dict[str, int]:
    return {name: int(seed) for name, seed in tomllib.loads(recorded.read_text()).items()}


def replay(name: str, seed: int) -> Run:
    """Run one seed with one bug planted."""
    mutant = next(one for one in MUTANTS if one.__name__ == name)
    with mutant():
        return run_seed(FAULTS_DEFAULT_SECONDS, seed)


def is_found(run: Run) -> bool:
    """Whether the run broke an invariant; any other failure is an error in the planted code itself."""
    return any(run.failure.startswith(invariant) for invariant in Invariant)


def passes(seed: int) -> bool:
    """Whether a seed passes without a planted bug; if it does not, finding a bug with it proves nothing."""
    return not run_seed(FAULTS_DEFAULT_SECONDS, seed).failure


def hunt(name: str) -> Hunt:
    """Search for a seed that finds a bug: the first that does so quickly, or the quickest of the first and ten more."""
    logging.disable()
    began, best = time.process_time(), None
    for tried in range(1, SEEDS_MAX + 1):
        run = replay(name, tried)
        if is_found(run) and (best is None or run.core_seconds < best.core_seconds) and passes(tried):
            best = run
        if best is not None and (best.core_seconds < QUICK_SECONDS or tried >= best.seed + 10):
            break
    return Hunt(name=name, tried=tried, found=best, seconds=time.process_time() - began)


def hunt_all(names: list[str], workers: int) -> Iterator[Hunt]:
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(hunt, names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the seeds to mutants.toml")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("names", nargs="*", help="search only for these bugs")
    options = parser.parse_args()
    names = options.names or [one.__name__ for one in MUTANTS]
    seeds, missed = recorded_seeds(), 0
    for one in hunt_all(names, options.workers):
        sys.stdout.write(f"{one}\n")
        sys.stdout.flush()
        if one.found is None:
            missed += 1
        else:
            seeds[one.name] = one.found.seed
    if options.record:
        recorded.write_text(HEADLINE + "".join(f"{name} = {seed}\n" for name, seed in sorted(seeds.items())))
    sys.stdout.write(f"{len(names) - missed} of {len(names)} planted bugs found within {SEEDS_MAX} seeds\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
