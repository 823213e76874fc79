"""Groups of a broker that is killed and comes back: its members go on, and nothing they committed is lost."""

import os
from collections.abc import Callable, Iterator

import pytest

from tailrace.testing import Broker
from tests.interop.client import Client
from tests.interop.conftest import clients_of
from tests.interop.drivers.confluent import Confluent
from tests.interop.feature import feature
from tests.interop.member import soon
from tests.interop.test_groups import PARTITIONS, all_below, everything, fill, read
from tests.interop.test_groups import group as group
from tests.interop.test_groups import topic as topic


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    if "TAILRACE_INTEROP_BOOTSTRAP" in os.environ:
        pytest.skip("these tests stop and start a broker of their own")
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def clients(broker: Broker) -> Iterator[Callable[[type[Client]], Client]]:
    yield from clients_of(broker.bootstrap)


@feature("the broker is killed and restarted: the group and its offsets are there, its member goes on", "member")
def test_restart(client: Client, topic: str, group: str, bench: Client, broker: Broker) -> None:
    fill(bench, topic, 10)
    with client.member(topic, group) as member:
        soon(lambda: read(member) == all_below(10))
        soon(lambda: bench.committed(group, topic) == dict.fromkeys(everything, 10))
        broker.kill()
        broker.restart()
        after = Confluent(broker.bootstrap).committed(group, topic)
        assert all(after[one] in (10, 11) for one in everything)  # a crash may cost an offset
        fill(bench, topic, 10)
        soon(lambda: len(dict.fromkeys(read(member))) == 20 * PARTITIONS)
        member.leave()
    with client.member(topic, group) as second:
        fill(bench, topic, 5)
        soon(lambda: len(read(second)) == 5 * PARTITIONS)
        assert min(second.got)[1] > max(one[1] for one in member.got)
