"""DMQP while simulated brokers crash and networks break: acknowledged messages come out, and none comes out twice."""

import pytest

from tests.simulation.dmqp_stage import MESSAGES, PUSHERS, run


@pytest.mark.parametrize("seed", range(1, 5))
def test_what_is_acknowledged_comes_out_once(seed: int) -> None:
    history, _ = run(seed)
    history.check()
    assert len(history.acknowledged) == PUSHERS * MESSAGES


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5, 60))
def test_more_seeds(seed: int) -> None:
    history, _ = run(seed)
    history.check()
