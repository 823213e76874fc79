"""A replica that catches up after data loss votes again as soon as its log is durable up to the leader's end."""

from dataclasses import replace

from tailrace.model.limits import BATCH_HEADER_BYTES
from tailrace.testing.simulation import Delay
from tests.unit.broker.simulated import KIND_ODDS, Brokers, simulated

slow_disk = replace(KIND_ODDS, sync=Delay(low_seconds=0.02, high_seconds=0.03))


@simulated(odds=slow_disk, log_checkpoint_interval_ms=500)
async def test_what_was_lost_is_back_when_the_last_sync_ends_even_if_nothing_is_said_after_it(brokers: Brokers) -> None:
    await brokers.make_topic("t", (1, 2, 3))
    for _ in range(3):
        end = brokers.append(1, "t")
    await brokers.until(lambda: brokers.replica(3, "t").high_watermark == end)
    path = f"{brokers.replica(3, 't').log.folder}/{0:020d}.log"
    await brokers.stop(3)
    brokers.machine(3).storage.flip_bit(path, BATCH_HEADER_BYTES + 5)
    await brokers.start(3)
    replica = brokers.replica(3, "t")
    await brokers.until(lambda: replica.log.end == end)
    await brokers.until(lambda: replica.replica.may_vote)
    assert replica.log.durable == end
