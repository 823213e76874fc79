"""One seed, one history: in every Python process, and again in the same one."""

import os
import subprocess
import sys

from tailrace.testing.simulation import World
from tests.simulation.echo import digest, scenario


def digest_elsewhere(seed: int, hash_seed: int) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation.echo", str(seed)],
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.strip()


def test_the_same_seed_gives_the_same_digest_whatever_python_hashes() -> None:
    digests = [digest_elsewhere(7, 1), digest_elsewhere(7, 2), digest(7), digest(7)]
    assert len(set(digests)) == 1


def test_other_seeds_give_other_histories() -> None:
    assert len({digest(seed) for seed in range(20)}) == 20


def test_the_digest_is_made_of_lines_that_people_can_read() -> None:
    with World(7, keep_lines=True) as world:
        world.run(scenario(world))
        kinds = [line.split()[2] for line in world.lines]
    assert {"boot", "connect", "write", "sync", "synced", "read", "crash", "retry", "done"} <= set(kinds)
