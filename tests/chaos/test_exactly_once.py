"""Consume, transform, produce, with workers and brokers killed at random: the output holds each input exactly once."""

import os
import random

import pytest

from tests.chaos.exactly_once import exactly_once

seed = int(os.environ.get("CHAOS_SEED", random.randrange(1_000_000)))


@pytest.mark.chaos
def test_five_kills_leave_each_input_in_the_output_exactly_once() -> None:
    exactly_once(seed=5, kills=5)


@pytest.mark.long
@pytest.mark.chaos
def test_fifty_kills_leave_each_input_in_the_output_exactly_once() -> None:
    exactly_once(seed=seed, kills=50)
