"""Crashes, pauses, clocks and offloaded work of simulated machines."""

import asyncio
import operator
from collections.abc import Callable

import pytest

from tailrace.ports import Ports
from tailrace.ports.offload import WorkerLost
from tailrace.testing.simulation import Crashed, Dead, Odds, SimulationFailed, World

crashes = pytest.mark.parametrize("power_loss", [False, True])


@crashes
def test_no_finally_block_runs_after_a_crash(power_loss: bool) -> None:
    seen: list[str] = []

    async def life() -> None:
        try:
            seen.append("alive")
            await asyncio.sleep(10)
        finally:
            seen.append("finally")

    async def main(world: World) -> None:
        machine = world.machine("a")
        machine.boot()
        machine.spawn(life())
        await asyncio.sleep(1)
        machine.crash(power_loss=power_loss)
        await asyncio.sleep(100)

    world = World(1)
    world.run(main(world))
    assert seen == ["alive"]
    world.close()
    assert seen == ["alive", "finally"]  # the coroutine is closed only now, when all its ports raise


def test_every_port_of_a_dead_process_raises() -> None:
    async def main(world: World) -> None:
        machine = world.machine("a")
        ports = machine.boot()
        file = ports.disk.open("/f")
        machine.crash(power_loss=False)
        uses: list[Callable[[], object]] = [
            ports.clock.monotonic,
            ports.clock.wall_ms,
            ports.host.boot_id,
            file.size,
            file.sync,
            lambda: file.write(b"x", 0),
            lambda: ports.disk.open("/g"),
            lambda: ports.disk.exists("/f"),
            lambda: ports.offload.thread(dict),
        ]
        for use in uses:
            with pytest.raises(Dead):
                use()
        with pytest.raises(Dead):
            await ports.net.connect(asyncio.Protocol, "a", 1)

    with World(1) as world:
        world.run(main(world))


def test_awaiting_a_process_that_crashes_raises_crashed() -> None:
    async def main(world: World) -> None:
        machine = world.machine("a")
        machine.boot()
        waiting = machine.run(asyncio.sleep(100))
        world.loop.call_later(1, lambda: machine.crash(power_loss=False))
        with pytest.raises(Crashed):
            await waiting
        assert world.loop.time() == 1

    with World(1) as world:
        world.run(main(world))


def test_unhandled_exceptions_fail_the_run_unless_their_process_is_dead() -> None:
    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError("background")

    async def main(world: World, *, crash: bool) -> None:
        machine = world.machine("a")
        machine.boot()
        machine.spawn(fail())
        await asyncio.sleep(2)
        if crash:
            machine.crash(power_loss=False)
        await asyncio.sleep(1)

    with World(1) as world:
        world.run(main(world, crash=True))
    with World(1) as world, pytest.raises(SimulationFailed, match="of a#1"):
        world.run(main(world, crash=False))


def test_a_crash_between_two_writes_of_one_callback() -> None:
    async def life(ports: Ports) -> None:
        file = ports.disk.open("/f")
        try:
            for number in range(10):
                file.write(b"x", number)
        except Exception:
            file.write(b"handled", 0)

    async def main(world: World) -> None:
        machine = world.machine("a")
        ports = machine.boot()
        machine.crash_at_operation(5, power_loss=False)  # create, then four writes
        with pytest.raises(Crashed):
            await machine.run(life(ports))
        assert machine.boot().disk.open("/f").read(0, 100) == b"xxx"

    with World(1) as world:
        world.run(main(world))


def test_a_pause_holds_all_callbacks_and_a_resume_runs_them_in_order() -> None:
    seen: list[tuple[str, float]] = []

    async def main(world: World) -> None:
        machine = world.machine("a")
        machine.boot()

        async def tick() -> None:
            for number in range(4):
                world.loop.call_soon(lambda number=number: seen.append((f"soon {number}", world.loop.time())))  # type: ignore[misc]
                await asyncio.sleep(1)
                seen.append((f"tick {number}", world.loop.time()))

        ticking = machine.run(tick())
        await asyncio.sleep(1.5)
        machine.pause()
        await asyncio.sleep(10)
        assert len(seen) == 3
        machine.resume()
        await ticking

    with World(1) as world:
        world.run(main(world))
    assert [what for what, _ in seen] == [f"{kind} {number}" for number in range(4) for kind in ("soon", "tick")]
    assert [when for what, when in seen if what == "tick 1"] == [11.5]


def test_timers_due_in_a_pause_run_in_order_after_it_and_before_later_callbacks() -> None:
    seen: list[int] = []

    async def main(world: World) -> None:
        machine = world.machine("a")
        machine.boot()

        world.loop.call_later(7, machine.resume)  # the last timer below is already ready to run by then

        async def set_timers() -> None:
            for number in range(5):
                world.loop.call_later(1 + number, seen.append, number)
            world.loop.call_later(7, seen.append, 5)

        await machine.run(set_timers())
        machine.pause()
        await asyncio.sleep(8)

    with World(1) as world:
        world.run(main(world))
    assert seen == [0, 1, 2, 3, 4, 5]


def test_clocks_of_two_machines_differ_and_jump_independently() -> None:
    async def main(world: World) -> None:
        one, other = world.machine("a"), world.machine("b")
        clock, reference = one.boot().clock, other.boot().clock
        assert clock.monotonic() != reference.monotonic()
        wall, monotonic, elsewhere = clock.wall_ms(), clock.monotonic(), reference.wall_ms()
        await asyncio.sleep(10)
        one.clock.jump(-60_000)
        assert clock.wall_ms() - wall == pytest.approx(-50_000, abs=5)
        assert clock.monotonic() - monotonic == pytest.approx(10, rel=2 * Odds().clock_drift_max)
        assert reference.wall_ms() - elsewhere == pytest.approx(10_000, abs=5)

    with World(1) as world:
        world.run(main(world))


def test_only_a_power_cut_changes_the_boot_id() -> None:
    async def main(world: World) -> None:
        machine = world.machine("a")
        ids = [machine.boot().host.boot_id()]
        for power_loss in (False, True):
            machine.crash(power_loss=power_loss)
            ids.append(machine.boot().host.boot_id())
        assert ids[0] == ids[1] != ids[2]

    with World(1) as world:
        world.run(main(world))


def test_offloaded_work_ends_later_with_its_result_or_its_error() -> None:
    async def main(world: World) -> None:
        offload = world.machine("a").boot().offload
        assert await offload.thread(lambda: 41 + 1) == 42
        assert world.loop.time() > 0
        assert await offload.process(operator.add, 1, 2) == 3
        with pytest.raises(ZeroDivisionError):
            await offload.process(operator.truediv, 1, 0)
        with pytest.raises(AttributeError):  # a lambda cannot be pickled
            offload.process(lambda: 1)

    with World(1) as world:
        world.run(main(world))


def test_the_stop_handler_runs_in_the_context_of_its_process() -> None:
    async def main(world: World) -> None:
        machine = world.machine("a")
        stopped = world.loop.create_future()
        machine.boot().host.on_stop(lambda: stopped.set_result(None))
        machine.pause()
        machine.stop()
        await asyncio.sleep(5)
        assert not stopped.done()
        machine.resume()
        await stopped

    with World(1) as world:
        world.run(main(world))


class Tally:
    def __init__(self, start: int) -> None:
        self.total = start

    def add(self, numbers: list[int]) -> list[int]:
        self.total += sum(numbers)
        numbers.append(self.total)
        return numbers


def test_a_session_keeps_its_object_and_takes_calls_in_order() -> None:
    async def run(world: World) -> None:
        session = world.machine("a").boot().offload.session(Tally, 10)
        given = [1]
        first, cancelled, last = session.call("add", given), session.call("add", [2]), session.call("add", [3])
        cancelled.cancel()
        assert (await first, await last, given) == ([1, 11], [3, 16], [1])
        with pytest.raises(TypeError):
            await session.call("add", 5)
        under_way = session.call("add", [1])
        session.close()
        for call in (under_way, session.call("add", [1])):
            with pytest.raises(WorkerLost):
                await call

    for seed in range(20):
        with World(seed, odds=Odds(worker_lost_chance=0.0)) as world:
            world.run(run(world))


def test_the_seed_loses_the_worker_of_a_session() -> None:
    async def run(world: World) -> None:
        offload = world.machine("a").boot().offload
        session = offload.session(Tally, 0)
        calls = [session.call("add", [1]) for _ in range(100)]
        results = await gather_in_order(calls)
        lost = next(at for at, result in enumerate(results) if isinstance(result, WorkerLost))
        assert results[:lost] == [[1, total] for total in range(1, lost + 1)]
        assert all(isinstance(result, WorkerLost) for result in results[lost:])

    with World(3, odds=Odds(worker_lost_chance=0.2)) as world:
        world.run(run(world))


async def gather_in_order(calls: "list[asyncio.Future[object]]") -> list[object]:
    results: list[object] = []
    for call in calls:
        try:
            results.append(await call)
        except WorkerLost as lost:
            results.append(lost)
    return results
