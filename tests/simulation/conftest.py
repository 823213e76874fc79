"""The fixture `stage`: a simulated world with one broker machine and one client machine."""

from collections.abc import Iterator

import pytest

from tailrace.testing.simulation import World
from tests.simulation.stage import Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    with World(7, keep_lines=True) as world:
        yield Stage(world)
