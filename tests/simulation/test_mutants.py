"""A planted bug is found by the seed that was recorded for it; `make mutants` looks for all of them anew.

Seeds are recorded by `python -m tests.simulation.mutants --record`.
"""

import pytest

from tests.simulation.mutants import is_found, recorded_seeds, replay
from tests.simulation.planted import MUTANTS


def test_there_are_as_many_planted_bugs_as_we_promise_each_with_a_seed() -> None:
    names = [mutant.__name__ for mutant in MUTANTS]
    assert len(names) >= 12
    assert sorted(names) == sorted(recorded_seeds())


@pytest.mark.parametrize("name", sorted(recorded_seeds()))
def test_a_planted_bug_is_found(name: str) -> None:
    seed = recorded_seeds()[name]
    run = replay(name, seed)
    assert is_found(run), f"seed {seed} breaks no invariant; record other seeds with `mutants --record`: {run.failure}"
