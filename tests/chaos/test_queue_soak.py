"""A queue whose workers and brokers are killed: good messages are handled, poison is in the dead letters."""

import os
import random

import pytest

from tests.chaos.queue_soak import Soak, is_poison, soak_queue, values

seed = int(os.environ.get("CHAOS_SEED", random.randrange(1_000_000)))
items = int(os.environ.get("CHAOS_ITEMS", "20000"))


@pytest.mark.chaos
def test_a_queue_under_fire_handles_each_message() -> None:
    soak_queue(Soak(seed=3, items=600, kills=5))


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.parametrize("remembers_s", [0.0, 600.0], ids=["forgets", "remembers"])
def test_a_long_soak(remembers_s: float) -> None:
    soak_queue(Soak(seed=seed, items=items, kills=items // 500, remembers_s=remembers_s))


def test_one_message_in_a_hundred_is_poison() -> None:
    made = list(values(10_000))
    assert len(made) == len(set(made)) == 10_000
    assert sum(map(is_poison, made)) == 100
    assert sum(one.startswith("slow") for one in made) == 500
    assert sum(one.startswith("crashes") for one in made) == 20
