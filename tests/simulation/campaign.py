"""Runs many seeds: `python -m tests.simulation.campaign cluster --seeds 2000`, or `power-cuts --cuts 1000`.

It prints one line per seed with the digest of its history, then the coverage of the whole campaign. A seed that fails
is printed with the command that replays it, and is added to `seeds.txt`. The seeds in that file run first.
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


def print_line(text: object) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_cuts(seed: int) -> tuple[int, Coverage | None, str]:
    try:
        coverage, digest = run_power_cuts(seed, CUTS_PER_SEED)
    except BaseException:
        return seed, None, traceback.format_exc()
    return seed, coverage, digest


def run_power_cut_campaign(options: argparse.Namespace) -> bool:
    count = -(-options.cuts // CUTS_PER_SEED)
    seeds = _seeds("power-cuts", options, count)
    total, failed, began = Coverage(), 0, time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(options.workers) as pool:
        for seed, coverage, text in pool.map(run_cuts, seeds):
            if coverage is None:
                failed += 1
                keep("power-cuts", seed, text.strip().splitlines()[-1])
                replay = f"python -m tests.simulation.campaign power-cuts --seed {seed}"
                print_line(f"seed {seed} FAILED; replay: {replay}\n{text}")
            else:
                total.add(coverage)
                print_line(f"seed {seed} {text}")
    counts = ", ".join(f"{getattr(total, name)} {name.replace('_', ' ')}" for name in total.__slots__)
    print_line(f"{len(seeds)} seeds in {time.monotonic() - began:.0f} s, {failed} failed; coverage: {counts}")
    return not failed


def run_cluster_campaign(options: argparse.Namespace) -> bool:
    campaign, began = Campaign(), time.monotonic()
    for run in run_seeds(_seeds("cluster", options, options.seeds), FAULTS_DEFAULT_SECONDS, options.workers):
        campaign.add(run)
        print_line(run)
        if run.failure:
            keep("cluster", run.seed, run.failure.splitlines()[0])
            print_line(f"  replay: tailrace simulate --seed {run.seed}")
    print_line(campaign)
    print_line(f"{time.monotonic() - began:.0f} s with {options.workers} workers")
    return campaign.passed


def _seeds(scenario: str, options: argparse.Namespace, count: int) -> list[int]:
    if options.seed is not None:
        return [options.seed]
    return kept_seeds(scenario) + list(range(options.first, options.first + count))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scenarios = parser.add_subparsers(dest="scenario", required=True)
    cuts, cluster = scenarios.add_parser("power-cuts"), scenarios.add_parser("cluster")
    cuts.add_argument("--cuts", type=int, default=1000, help="how many power cuts in all")
    cluster.add_argument("--seeds", type=int, default=2000, help="how many seeds")
    for scenario in (cuts, cluster):
        scenario.add_argument("--seed", type=int, help="run only this seed")
        scenario.add_argument("--first", type=int, default=1, help="the first seed")
        scenario.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    if options.seed is None:
        logging.disable()  # brokers log every injected fault
    campaign = run_power_cut_campaign if options.scenario == "power-cuts" else run_cluster_campaign
    return 0 if campaign(options) else 1


if __name__ == "__main__":
    sys.exit(main())
