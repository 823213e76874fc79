"""Tests of the command line run real processes against a real broker, one broker per test module."""

import uuid
from collections.abc import Iterator
from functools import partial

import pytest

from tailrace.testing import Broker
from tests.unit.cli.program import Program, run_tailrace


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(fsync="never") as broker:
        yield broker


@pytest.fixture(scope="module")
def tailrace(broker: Broker) -> Program:
    """Run a command against the module's broker."""
    return partial(run_tailrace, bootstrap=broker.bootstrap)


@pytest.fixture
def topic() -> str:
    """A topic name that no other test uses."""
    return f"topic-{uuid.uuid4().hex[:8]}"
