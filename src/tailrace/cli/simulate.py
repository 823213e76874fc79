"""`tailrace simulate`: a whole cluster in one process, on virtual time, with injected faults."""

import logging
import os
from typing import Annotated, Final

import typer

from tailrace.cli.failure import Failed

FAULTS_DEFAULT_MINUTES: Final = 0.2


def simulate(
    seed: Annotated[int, typer.Option("--seed", "-s", min=0, help="First seed. A seed determines the whole run.")] = 1,
    seeds: Annotated[int, typer.Option("--seeds", "-n", min=1, help="Number of seeds to run.")] = 1,
    minutes: Annotated[
        float, typer.Option("--minutes", "-m", min=0.01, help="Virtual minutes of faults per seed.")
    ] = FAULTS_DEFAULT_MINUTES,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="Worker processes.", show_default="one per core")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print every event of the seed's run.")] = False,
) -> None:
    """Run brokers in a simulated cluster with crashes, network partitions and delays, and check the invariants.

    Prints one line per seed, with the digest of its history. For a seed that fails, it prints the broken invariant and
    the command that reproduces it: the same seed always gives the same history.

    \b
    Examples:
      tailrace simulate --seed 7
      tailrace simulate --seeds 100
      tailrace simulate --seed 7 --minutes 2
    """
    from tailrace.testing.scenarios.cluster.campaign import Campaign, run_seeds

    logging.disable()  # disks that are full, and logs that are cut, are what this is about
    if trace:
        _print_history(seed, minutes)
        return
    campaign = Campaign()
    for run in run_seeds(range(seed, seed + seeds), minutes * 60, min(seeds, workers or os.cpu_count() or 1)):
        campaign.add(run)
        print(run, flush=True)
        if run.failure:
            print(f"  reproduce with: tailrace simulate --seed {run.seed} --minutes {minutes:g}", flush=True)
    print(campaign)
    if not campaign.passed:
        raise Failed(
            f"{len(campaign.failed)} of {campaign.seeds} seeds failed, or too few of the required events happened; "
            "see above."
        )


def _print_history(seed: int, minutes: float) -> None:
    from tailrace.testing.scenarios.cluster.campaign import describe_failure
    from tailrace.testing.scenarios.cluster.scenario import trace_cluster
    from tailrace.testing.simulation import SimulationFailed

    try:
        for line in trace_cluster(seed, minutes * 60):
            print(line)
    except (AssertionError, SimulationFailed) as error:
        raise Failed(describe_failure(error)) from None
