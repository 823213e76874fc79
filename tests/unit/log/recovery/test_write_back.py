"""Pages that an fsync failed to write do not count as durable, neither in this run of the process nor in the next."""

import pytest

from tailrace.log.log import Log, RecoveryPoint
from tailrace.ports import Ports
from tailrace.ports.disk import make_lasting_dir
from tailrace.testing.simulation import World
from tests.unit.log.logs import everything, one_batch, open_log, put, topic

FOLDER = "/data/p"


async def opened(ports: Ports, recovery: RecoveryPoint | None = None) -> Log:
    await make_lasting_dir(ports.disk, "/data")
    return await open_log(FOLDER, settings=topic(segment_bytes=1024), fsync="always", recovery=recovery, ports=ports)


async def restart_after_a_failed_fsync(world: World, batches: int) -> None:
    machine = world.machine("broker")

    async def fail() -> None:
        log = await opened(machine.boot())
        put(log)
        await log.flush()
        machine.storage.fail_next_sync(f"{FOLDER}/{0:020d}.log")
        for number in range(batches):
            batch = one_batch([b"%03d" % number], base_offset=log.end, epoch=1)
            log.append_as_is(batch, 0)
        with pytest.raises(OSError, match="Input/output"):
            await log.flush()
        assert log.failed is not None

    async def reopen() -> tuple[int, list[bytes | None]]:
        log = await opened(machine.boot())
        return log.durable, [record.value for record in await everything(log)]

    await fail()
    machine.crash(power_loss=False)
    durable, values = await reopen()
    assert durable == 1 + batches
    machine.crash(power_loss=True)
    assert await reopen() == (durable, values)


@pytest.mark.parametrize("batches", [1, 3, 30])
def test_pages_of_a_failed_fsync_are_rewritten_before_they_count_as_durable(batches: int) -> None:
    for seed in range(6):
        with World(seed) as world:
            world.run(restart_after_a_failed_fsync(world, batches))
