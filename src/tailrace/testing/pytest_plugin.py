"""For users' own tests: a broker as a pytest fixture, there as soon as tailrace is installed.

def test_orders(tailrace_broker):
    producer = Producer({"bootstrap.servers": tailrace_broker.bootstrap})
"""

from collections.abc import Iterator

import pytest

from tailrace.testing.broker import Broker


@pytest.fixture(scope="session")
def tailrace_broker() -> Iterator[Broker]:
    """One Tailrace broker for the whole test session, forgotten afterwards; use topic names of your own."""
    with Broker(fsync="never") as broker:
        yield broker
