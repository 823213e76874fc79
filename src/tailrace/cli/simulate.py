"""`tailrace simulate`: a whole cluster in one process, on virtual time, under every fault there is."""

import logging
import os
from typing import Annotated, Final

import typer

from tailrace.cli.failure import Failed

TROUBLE_DEFAULT_MINUTES: Final = 0.2


def simulate(
    seed: Annotated[int, typer.Option("--seed", "-s", min=0, help="The first seed: one seed, one history.")] = 1,
    seeds: Annotated[int, typer.Option("--seeds", "-n", min=1, help="How many, from the first on.")] = 1,
    minutes: Annotated[
        float, typer.Option("--minutes", "-m", min=0.01, help="How long the trouble lasts in each, in virtual time.")
    ] = TROUBLE_DEFAULT_MINUTES,
    workers: Annotated[
        int | None, typer.Option("--workers", "-w", min=1, help="Processes that share the seeds; one for each core.")
    ] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print all that happens, line by line.")] = False,
) -> None:
    """Run real brokers in a simulated world that crashes, cuts and slows them, and check what must hold.

    Each seed prints a line with the digest of its history. A seed that fails says which promise was broken, and how to
    see it again: the same seed gives the same history, always.

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
            print(f"  see it again: tailrace simulate --seed {run.seed} --minutes {minutes:g}", flush=True)
    print(campaign)
    if not campaign.passed:
        raise Failed(f"{len(campaign.failed)} of {campaign.seeds} seeds failed, or too little was met; see above.")


def _print_history(seed: int, minutes: float) -> None:
    from tailrace.testing.scenarios.cluster.campaign import describe_failure
    from tailrace.testing.scenarios.cluster.scenario import trace_cluster
    from tailrace.testing.simulation import SimulationFailed

    try:
        for line in trace_cluster(seed, minutes * 60):
            print(line)
    except (AssertionError, SimulationFailed) as error:
        raise Failed(describe_failure(error)) from None
