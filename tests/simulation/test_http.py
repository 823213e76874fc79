"""The HTTP queue while simulated brokers crash, networks break and clients give up: numbered requests lose nothing."""

import pytest

from tests.simulation.http_stage import run


@pytest.mark.parametrize("seed", range(1, 3))
def test_every_message_comes_once_and_in_order(seed: int) -> None:
    history, _ = run(seed)
    history.check()
    assert history.answers["/consumer/consume 200"] > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 40))
def test_more_seeds(seed: int) -> None:
    history, _ = run(seed)
    history.check()
