"""Each planted bug is found by the seed that was recorded for it.

`make mutants` searches for all of them again; `python -m tests.simulation.mutants --record` records the seeds.
"""

import pytest

from tests.simulation.mutants import is_found, recorded_seeds, replay
from tests.simulation.planted import MUTANTS


def test_every_planted_bug_has_a_recorded_seed() -> None:
    names = [mutant.__name__ for mutant in MUTANTS]
    assert len(names) >= 12
    assert sorted(names) == sorted(recorded_seeds())


@pytest.mark.parametrize("name", sorted(recorded_seeds()))
def test_a_planted_bug_is_found(name: str) -> None:
    seed = recorded_seeds()[name]
    run = replay(name, seed)
    assert is_found(run), f"seed {seed} breaks no invariant; record other seeds with `mutants --record`: {run.failure}"
