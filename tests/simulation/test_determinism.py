"""One seed gives one history: in every Python process, and when it is repeated in the same process."""

from tailrace.testing.simulation import World
from tests.simulation.echo import digest, scenario
from tests.simulation.hash_seeds import digest_in_new_process


def test_the_same_seed_gives_the_same_digest_under_every_hash_seed() -> None:
    elsewhere = [digest_in_new_process("-m", "tests.simulation.echo", "7", hash_seed=one) for one in (1, 2)]
    digests = [*elsewhere, digest(7), digest(7)]
    assert len(set(digests)) == 1


def test_other_seeds_give_other_histories() -> None:
    assert len({digest(seed) for seed in range(20)}) == 20


def test_the_history_behind_a_digest_can_be_read_line_by_line() -> None:
    with World(7, keep_lines=True) as world:
        world.run(scenario(world))
        kinds = [line.split()[2] for line in world.lines]
    assert {"boot", "connect", "write", "sync", "synced", "read", "crash", "retry", "done"} <= set(kinds)
