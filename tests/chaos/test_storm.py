"""Three real brokers under load, while one after the other is killed, paused or cut off: no promise is broken."""

import os
import random

import pytest

from tests.chaos.storm import Storm, weather

minutes = float(os.environ.get("TAILRACE_CHAOS_MINUTES", "10"))
seed = int(os.environ.get("TAILRACE_CHAOS_SEED", random.randrange(1_000_000)))


@pytest.mark.chaos
def test_half_a_minute_of_trouble_loses_and_doubles_nothing() -> None:
    weathered = weather(Storm(seed=4, seconds=25.0))
    assert weathered.acknowledged > 5_000
    assert sum(weathered.troubles.values()) >= 4


@pytest.mark.long
@pytest.mark.chaos
def test_a_storm_loses_and_doubles_nothing() -> None:
    weathered = weather(Storm(seed=seed, seconds=60 * minutes))
    assert weathered.acknowledged > 10_000 * minutes
    assert sum(weathered.troubles.values()) >= 5 * minutes
