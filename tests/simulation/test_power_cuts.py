"""A few seeds of the power cut scenario, the seeds that once failed, and the proof that one seed is one history."""

import pytest

from tailrace.testing.scenarios.power_cuts.scenario import Coverage, run_power_cuts
from tests.simulation.campaign import CUTS_PER_SEED
from tests.simulation.hash_seeds import digest_in_new_process
from tests.simulation.seeds import kept_seeds

PROOF_CUTS = 3
PROGRAM = (
    "import sys, logging; from tailrace.testing.scenarios.power_cuts.scenario import run_power_cuts; logging.disable();"
    f"print(run_power_cuts(int(sys.argv[1]), {PROOF_CUTS})[1])"
)


@pytest.mark.parametrize("seed", range(1001, 1013))
def test_every_acknowledged_record_is_there_in_order_and_once(seed: int) -> None:
    coverage, _ = run_power_cuts(seed, CUTS_PER_SEED)
    check_exercised_enough(coverage)


@pytest.mark.parametrize("seed", kept_seeds("power-cuts"))
def test_seeds_that_once_failed(seed: int) -> None:
    coverage, _ = run_power_cuts(seed, CUTS_PER_SEED)
    check_exercised_enough(coverage)


def check_exercised_enough(coverage: Coverage) -> None:
    """A seed in which little happened proves little."""
    assert coverage.power_cuts >= CUTS_PER_SEED
    assert coverage.acknowledged > 100
    assert coverage.partitions_read >= CUTS_PER_SEED // 2
    assert coverage.segments > 1
    assert coverage.topic_checks > 0


def test_a_few_seeds_together_exercise_everything() -> None:
    """What is rare need not happen in every seed."""
    total = Coverage()
    for seed in range(1013, 1017):
        total.add(run_power_cuts(seed, CUTS_PER_SEED)[0])
    missing = [name for name in total.__slots__ if getattr(total, name) == 0]
    assert missing == []


def test_the_same_seed_gives_the_same_history_under_every_hash_seed() -> None:
    """One broker and its clients: the same trace digest under two values of PYTHONHASHSEED."""
    digests = [digest_in_new_process("-c", PROGRAM, "7", hash_seed=hash_seed) for hash_seed in (1, 2)]
    assert digests[0] == digests[1] == run_power_cuts(7, PROOF_CUTS)[1]


def test_other_seeds_give_other_histories() -> None:
    assert len({run_power_cuts(seed, 1)[1] for seed in range(5)}) == 5
