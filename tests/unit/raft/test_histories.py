"""Every seed is another history. In each, the invariants hold after every step, and all converge when all is healed."""

from collections import Counter

import pytest

from tests.unit.raft.histories import History

steps = 6000
seeds_per_test = 15


def histories(size: int, first: int, count: int) -> Counter[str]:
    """Live through them; what was met on the way."""
    met: Counter[str] = Counter()
    for seed in range(first, first + count):
        history = History(seed, size)
        try:
            history.run(steps)
        except Exception as error:
            error.add_note(f"seed {seed}, {size} voters")
            raise
        met += history.met
        met["entries committed"] += len(history.invariants.committed)
    return met


@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("first", range(0, 30, seeds_per_test))
def test_random_histories_keep_the_invariants(size: int, first: int) -> None:
    met = histories(size, first, seeds_per_test)
    # A history in which nothing happens proves nothing.
    assert met["elections won"] >= 8 * seeds_per_test, met
    assert met["truncations"] >= 2 * seeds_per_test, met
    assert met["voter changes"] >= 2, met
    assert met["entries lost in a crash"] >= 5 * seeds_per_test, met
    assert met["entries committed"] >= 15 * seeds_per_test, met


@pytest.mark.long
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_many_more_seeds(size: int, first: int) -> None:
    histories(size, first, 250)
