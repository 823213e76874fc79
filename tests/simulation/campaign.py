"""Many seeds of the power-cut scenario: `python -m tests.simulation.campaign --cuts 1000`.

One line a seed with the digest of its history, then what the whole campaign met. A failing seed says how to replay it;
once understood it is kept in `seeds.txt`, which every run replays first.
"""

import argparse
import concurrent.futures
import logging
import sys
import time
import traceback
from pathlib import Path

from tailrace.testing.scenarios.power_cuts import Met, run_power_cuts

cuts_per_seed = 10
kept = Path(__file__).with_name("seeds.txt")


def kept_seeds() -> list[int]:
    return [int(line.split()[0]) for line in kept.read_text().splitlines() if line and not line.startswith("#")]


def run_seed(seed: int) -> tuple[int, Met | None, str]:
    try:
        met, digest = run_power_cuts(seed, cuts_per_seed)
    except BaseException:
        return seed, None, traceback.format_exc()
    return seed, met, digest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuts", type=int, default=1000, help="power cuts in all")
    parser.add_argument("--seed", type=int, help="this seed only")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    count = -(-options.cuts // cuts_per_seed)
    seeds = (
        [options.seed] if options.seed is not None else kept_seeds() + list(range(options.first, options.first + count))
    )
    if options.seed is None:
        logging.disable()  # disks that are full, and logs that are cut, are what this is about
    total, failed, began = Met(), 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.workers) as pool:
        for seed, met, text in pool.map(run_seed, seeds):
            if met is None:
                failed += 1
                sys.stdout.write(
                    f"seed {seed} FAILED; replay: python -m tests.simulation.campaign --seed {seed}\n{text}\n"
                )
            else:
                total.add(met)
                sys.stdout.write(f"seed {seed} {text}\n")
            sys.stdout.flush()
    met_text = ", ".join(f"{getattr(total, name)} {name.replace('_', ' ')}" for name in total.__slots__)
    sys.stdout.write(f"{len(seeds)} seeds in {time.monotonic() - began:.0f} s, {failed} failed: {met_text}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
