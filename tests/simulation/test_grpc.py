"""`message_queue.MessageQueue` while simulated brokers crash and networks break: what is acknowledged is there."""

import pytest

from tests.simulation.grpc_stage import BATCH, BATCHES, PRODUCERS, run


@pytest.mark.parametrize("seed", range(1, 3))
def test_what_is_acknowledged_is_there_in_order(seed: int) -> None:
    history, _ = run(seed)
    history.check()
    assert sum(map(len, history.acknowledged.values())) == PRODUCERS * BATCHES * BATCH


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3, 60))
def test_more_seeds(seed: int) -> None:
    history, _ = run(seed)
    history.check()
