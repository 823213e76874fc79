"""Producer ids: none is given twice, and some are in stock for when the controller cannot be reached."""

import pytest

from tailrace.broker.control.controller_calls import CONTROLLER_TIMEOUT_S
from tailrace.broker.control.producer_ids import REFILL_BELOW
from tailrace.model.faults import CoordinatorLoading
from tests.unit.broker.simulated import Brokers, simulated


@simulated()
async def test_a_broker_that_is_cut_off_has_some_left(brokers: Brokers) -> None:
    await brokers.until(lambda: brokers[3].control.producer_ids.in_hand >= REFILL_BELOW)
    for one in (1, 2):
        brokers.world.network.cut("b3", f"b{one}")
    asked_at = brokers.world.loop.time()
    taken = [await brokers.machine(3).run(brokers[3].control.producer_ids.take()) for _ in range(10)]
    assert len(set(taken)) == 10
    assert brokers.world.loop.time() - asked_at < 0.1


@simulated()
async def test_without_ids_left_the_error_is_one_that_clients_retry(brokers: Brokers) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS: clients of every version retry on it."""
    await brokers.until(lambda: brokers[3].control.producer_ids.in_hand >= REFILL_BELOW)
    for one in (1, 2):
        brokers.world.network.cut("b3", f"b{one}")

    async def take_all() -> None:
        while True:
            await brokers[3].control.producer_ids.take()

    with pytest.raises(CoordinatorLoading, match="no producer id is available"):
        await brokers.machine(3).run(take_all())


@simulated()
async def test_concurrent_requests_share_one_call_to_the_controller(brokers: Brokers) -> None:
    ids = brokers[3].control.producer_ids
    await brokers.until(lambda: ids.in_hand >= REFILL_BELOW)
    for one in (1, 2):
        brokers.world.network.cut("b3", f"b{one}")
    while ids.in_hand:
        await brokers.machine(3).run(ids.take())
    asked_at, failed_at = brokers.world.loop.time(), []

    async def ask() -> None:
        with pytest.raises(CoordinatorLoading):
            await ids.take()
        failed_at.append(brokers.world.loop.time())

    for _ in range(30):
        brokers.machine(3).spawn(ask())
    await brokers.until(lambda: len(failed_at) == 30, within_seconds=60.0)
    assert failed_at[-1] - asked_at < 2.5 * CONTROLLER_TIMEOUT_S


@simulated(count=1)
async def test_blocks_follow_on_each_other_without_a_wait_or_an_id_twice(brokers: Brokers) -> None:
    ids = brokers[1].control.producer_ids
    taken = [await brokers.machine(1).run(ids.take()) for _ in range(5 * REFILL_BELOW)]
    assert len(set(taken)) == len(taken)
    await brokers.until(lambda: ids.in_hand >= REFILL_BELOW)
