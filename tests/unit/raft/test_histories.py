"""Random histories, one per seed: the invariants hold after every step, and all replicas converge after the faults."""

from collections import Counter

import pytest

from tests.unit.raft.histories import History

STEPS = 6000
SEEDS_PER_TEST = 15


def histories(size: int, first: int, count: int) -> Counter[str]:
    """Run the histories of `count` seeds; how often each kind of event occurred."""
    met: Counter[str] = Counter()
    for seed in range(first, first + count):
        history = History(seed, size)
        try:
            history.run(STEPS)
        except Exception as error:
            error.add_note(f"seed {seed}, {size} voters")
            raise
        met += history.met
        met["entries committed"] += len(history.invariants.committed)
    return met


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("first", range(0, 30, SEEDS_PER_TEST))
def test_random_histories_keep_the_invariants(size: int, first: int) -> None:
    met = histories(size, first, SEEDS_PER_TEST)
    # Histories without such events would prove nothing.
    assert met["elections won"] >= 8 * SEEDS_PER_TEST, met
    assert met["truncations"] >= 2 * SEEDS_PER_TEST, met
    assert met["voter changes"] >= 2, met
    assert met["entries lost in a crash"] >= 5 * SEEDS_PER_TEST, met
    assert met["entries committed"] >= 15 * SEEDS_PER_TEST, met


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_many_more_seeds(size: int, first: int) -> None:
    histories(size, first, 250)
