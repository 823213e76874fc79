"""Every planted bug is found by the seed that was recorded for it; `make mutants` looks for all of them anew."""

import pytest

from tests.simulation.mutants import recorded_seeds, replay
from tests.simulation.planted import mutants

names = [mutant.__name__ for mutant in mutants]


def test_every_planted_bug_has_a_seed() -> None:
    assert sorted(recorded_seeds()) == sorted(names)
    assert len(names) >= 12


@pytest.mark.parametrize("name", names)
def test_a_planted_bug_is_found(name: str) -> None:
    seed = recorded_seeds()[name]
    assert replay(name, seed).failure, f"seed {seed} does not find it any more: make mutants, and --record"
