"""A hundred seeds of the cluster scenario, the seeds that once failed, and the proof that one seed is one history."""

import pytest

from tailrace.testing.scenarios.cluster.campaign import Campaign, Run, run_seed
from tailrace.testing.scenarios.cluster.coverage import REQUIRED_PER_BLOCK
from tailrace.testing.scenarios.cluster.plan import FAULTS_DEFAULT_SECONDS, plan_for
from tests.simulation.hash_seeds import digest_in_new_process
from tests.simulation.seeds import kept_seeds

SHARES = 4
# The few with a compacted topic come first, so that each share has as many of them.
SEEDS = sorted(range(5001, 5101), key=lambda seed: not plan_for(seed).compacts)
PROOF_SECONDS = 3.0
PROGRAM = (
    "import sys, logging; from tailrace.testing.scenarios.cluster.scenario import run_cluster; logging.disable();"
    f"print(run_cluster(int(sys.argv[1]), {PROOF_SECONDS}).digest)"
)


@pytest.mark.parametrize("share", range(SHARES))
def test_all_invariants_hold_under_all_faults(share: int) -> None:
    """Each share must have exercised its part of what is required of a hundred seeds."""
    campaign = Campaign()
    for seed in SEEDS[share::SHARES]:
        campaign.add(check(seed))
    counts = {name: getattr(campaign.coverage, name) for name in REQUIRED_PER_BLOCK}
    too_few = {name: count for name, count in counts.items() if count < REQUIRED_PER_BLOCK[name] / SHARES}
    assert too_few == {}, campaign


@pytest.mark.parametrize("seed", kept_seeds("cluster"))
def test_seeds_that_once_failed(seed: int) -> None:
    check(seed)


def test_the_same_seed_gives_the_same_history_under_every_hash_seed() -> None:
    """Three replicating brokers and their clients: the same trace digest under two values of PYTHONHASHSEED."""
    seed = next(seed for seed in range(100) if plan_for(seed).brokers == 3)
    digests = [digest_in_new_process("-c", PROGRAM, str(seed), hash_seed=hash_seed) for hash_seed in (1, 2)]
    assert digests[0] == digests[1] == run_seed(PROOF_SECONDS, seed).digest != ""


def check(seed: int) -> Run:
    run = run_seed(FAULTS_DEFAULT_SECONDS, seed)
    assert not run.failure, f"{run}\nreplay: tailrace simulate --seed {seed}"
    return run
