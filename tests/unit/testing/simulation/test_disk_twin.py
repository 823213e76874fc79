"""The simulated disk and the real one give the same results for the same steps, as long as nothing crashes."""

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.ports.disk import Disk
from tailrace.ports.offload import SystemOffload
from tailrace.ports.system_disk import SystemDisk
from tailrace.testing.simulation import World

Step = tuple[str, tuple[object, ...]]
KINDS = "write write read cold truncate size rename remove remove_dir make_dir names exists"
NAMES = ("a", "b", "c/a", "c/b", "c", "d/e/f", "d/e", "d")


def draw_steps(rng: random.Random, count: int) -> list[Step]:
    return [_draw_step(rng) for _ in range(count)]


def _draw_step(rng: random.Random) -> Step:
    kind = rng.choice(KINDS.split())
    name, position = rng.choice(NAMES), rng.randrange(6000)
    match kind:
        case "write":
            return kind, (name, rng.randbytes(rng.randrange(3000)), position)
        case "read" | "cold":
            return kind, (name, position, rng.randrange(5000))
        case "truncate":
            return kind, (name, position)
        case "rename":
            return kind, (name, rng.choice(NAMES))
    return kind, (name,)


async def play(disk: Disk, root: str, steps: list[Step]) -> list[object]:
    """The result of each step, or its error."""
    results: list[object] = []
    for kind, arguments in steps:
        name, *rest = arguments
        path = f"{root}/{name}"
        try:
            if kind == "cold":
                file = disk.open(path)
                results.append(await file.read_cold(*rest))  # type: ignore[arg-type]
                await file.sync()
            elif kind in ("write", "read", "truncate", "size"):
                file = disk.open(path)
                results.append(getattr(file, kind)(*rest))
                file.close()
            elif kind == "rename":
                results.append(disk.rename(path, f"{root}/{rest[0]}"))  # type: ignore[func-returns-value]
            else:
                call: Callable[[str], object] = getattr(disk, kind)
                results.append(call(path))
                await disk.sync_dir(path)
        except OSError as error:
            results.append((kind, name, type(error).__name__, error.errno))
    return results


@pytest.mark.parametrize("seed", range(8))
def test_the_same_steps_give_the_same_results(seed: int, tmp_path: Path) -> None:
    steps = draw_steps(random.Random(seed), 300)
    disk = SystemDisk(SystemOffload(), descriptors_max=3)
    real = asyncio.run(play(disk, str(tmp_path), steps))
    disk.offload.close()

    async def scenario(world: World) -> list[object]:
        simulated = world.machine("a").boot().disk
        simulated.make_dir(str(tmp_path))
        return await play(simulated, str(tmp_path), steps)

    with World(seed) as world:
        assert world.run(scenario(world)) == real
    assert len({str(result) for result in real}) > 20
    shutil.rmtree(tmp_path)
