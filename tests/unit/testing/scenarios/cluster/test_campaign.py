"""A campaign reports failures and costs, and does not pass with too little coverage."""

import time

from tailrace.testing.scenarios.cluster.campaign import Campaign, Run
from tailrace.testing.scenarios.cluster.coverage import REQUIRED_PER_BLOCK, Coverage


def passed(seed: int, coverage: Coverage, core_seconds: float = 0.0) -> Run:
    return Run(seed=seed, coverage=coverage, digest="d", core_seconds=core_seconds)


def test_a_failed_seed_is_shown_with_its_invariant() -> None:
    run = Run(seed=7, coverage=Coverage(), digest="", core_seconds=1.0, failure="one leader per epoch: two of them")
    assert str(run).startswith("seed 7 FAILED")
    assert "one leader per epoch" in str(run)


def test_a_hundred_seeds_with_too_little_coverage_do_not_pass() -> None:
    campaign = Campaign(seeds=100)
    assert not campaign.passed
    assert len(campaign.shortfalls) == len(REQUIRED_PER_BLOCK)
    assert "too few torn tails" in str(campaign)


def test_a_block_with_too_little_coverage_does_not_pass_beside_others_with_enough() -> None:
    enough, nothing = Coverage(**REQUIRED_PER_BLOCK), Coverage()
    campaign = Campaign()
    for seed in range(1, 301):
        campaign.add(passed(seed, nothing if 101 <= seed <= 200 else enough))
    assert not campaign.coverage.shortfalls(campaign.seeds)
    assert not campaign.passed
    assert len(campaign.shortfalls) == len(REQUIRED_PER_BLOCK)
    assert "seeds 101 to 200: too few torn tails: 0 in 100 seeds, 50 are required" in str(campaign)


def test_nothing_is_required_of_a_block_that_is_not_full() -> None:
    campaign = Campaign()
    for seed in range(1, 151):
        campaign.add(passed(seed, Coverage() if seed > 100 else Coverage(**REQUIRED_PER_BLOCK)))
    assert campaign.passed


def test_a_campaign_shows_wall_time_and_core_time() -> None:
    campaign = Campaign(began=time.monotonic() - 10)
    for seed in (1, 2):  # at the same time, on two cores
        campaign.add(passed(seed, Coverage(seconds=50.0), core_seconds=10.0))
    assert "virtual to wall time: 10.0 to 1, in 10 s; to core time: 5.0 to 1, 10.00 s of a core per seed" in str(
        campaign
    )
