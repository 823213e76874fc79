"""Many seeds: `python -m tests.simulation.campaign cluster --seeds 2000`, or `power-cuts --cuts 1000`.

One line a seed with the digest of its history, then what the whole campaign met. A failing seed says how to replay it
and is kept in `seeds.txt`; those that are kept come first.
"""

import argparse
import concurrent.futures
import logging
import sys
import time
import traceback

from tailrace.testing.scenarios.cluster.campaign import Campaign, run_seeds
from tailrace.testing.scenarios.cluster.plan import FAULTS_DEFAULT_SECONDS
from tailrace.testing.scenarios.power_cuts.scenario import Coverage, run_power_cuts
from tests.simulation.seeds import keep, kept_seeds

CUTS_PER_SEED = 10


def say(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_cuts(seed: int) -> tuple[int, Coverage | None, str]:
    try:
        coverage, digest = run_power_cuts(seed, CUTS_PER_SEED)
    except BaseException:
        return seed, None, traceback.format_exc()
    return seed, coverage, digest


def cut_power(options: argparse.Namespace) -> bool:
    count = -(-options.cuts // CUTS_PER_SEED)
    seeds = _seeds("power-cuts", options, count)
    total, failed, began = Coverage(), 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.workers) as pool:
        for seed, coverage, text in pool.map(run_cuts, seeds):
            if coverage is None:
                failed += 1
                keep("power-cuts", seed, text.strip().splitlines()[-1])
                say(f"seed {seed} FAILED; replay: python -m tests.simulation.campaign power-cuts --seed {seed}\n{text}")
            else:
                total.add(coverage)
                say(f"seed {seed} {text}")
    met_text = ", ".join(f"{getattr(total, name)} {name.replace('_', ' ')}" for name in total.__slots__)
    say(f"{len(seeds)} seeds in {time.monotonic() - began:.0f} s, {failed} failed: {met_text}")
    return not failed


def break_clusters(options: argparse.Namespace) -> bool:
    campaign, began = Campaign(), time.monotonic()
    for run in run_seeds(_seeds("cluster", options, options.seeds), FAULTS_DEFAULT_SECONDS, options.workers):
        campaign.add(run)
        say(run)
        if run.failure:
            keep("cluster", run.seed, run.failure.splitlines()[0])
            say(f"  replay: tailrace simulate --seed {run.seed}")
    say(campaign)
    say(f"{time.monotonic() - began:.0f} s with {options.workers} workers")
    return campaign.passed


def _seeds(scenario: str, options: argparse.Namespace, count: int) -> list[int]:
    if options.seed is not None:
        return [options.seed]
    return kept_seeds(scenario) + list(range(options.first, options.first + count))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scenarios = parser.add_subparsers(dest="scenario", required=True)
    cuts, cluster = scenarios.add_parser("power-cuts"), scenarios.add_parser("cluster")
    cuts.add_argument("--cuts", type=int, default=1000, help="power cuts in all")
    cluster.add_argument("--seeds", type=int, default=2000, help="how many")
    for one in (cuts, cluster):
        one.add_argument("--seed", type=int, help="this seed only")
        one.add_argument("--first", type=int, default=1, help="the first seed")
        one.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.seed is None:
        logging.disable()  # disks that are full, and logs that are cut, are what this is about
    passed = cut_power(options) if options.scenario == "power-cuts" else break_clusters(options)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
