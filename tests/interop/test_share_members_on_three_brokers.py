"""Share groups of a cluster: leaders move and die, and so do both coordinators."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tailrace.broker.coordination.coordinator import partition_of
from tailrace.model.topics import OFFSETS_TOPIC
from tailrace.testing import Cluster
from tests.interop.client import Client, Refused
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.share_member import Delivery, ShareMember
from tests.interop.test_share_members import fill, left, places
from tests.interop.test_share_members import group as group
from tests.interop.test_share_members import test_delete as test_delete
from tests.interop.test_share_members import test_describe as test_describe
from tests.interop.test_share_members import test_killed as test_killed
from tests.interop.test_share_members import test_lock_ends as test_lock_ends
from tests.interop.test_share_members import test_offsets as test_offsets
from tests.interop.test_share_members import test_outcomes as test_outcomes
from tests.interop.test_share_members import test_share as test_share
from tests.interop.test_share_members import test_two_groups as test_two_groups
from tests.interop.test_share_topics import test_committed as test_committed
from tests.interop.test_share_topics import test_made_again as test_made_again
from tests.interop.three_brokers import bootstrap as bootstrap
from tests.interop.three_brokers import clients as clients
from tests.interop.three_brokers import three_brokers
from tests.interop.three_brokers import topic as topic

pytestmark = pytest.mark.long

PARTITIONS = 3
EACH = 50
WITHIN_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    yield from three_brokers(auto_leader_rebalance_enable=False)


@pytest.fixture
def wide(name: str, bench: Client) -> str:
    """A topic whose partitions are led by different brokers."""
    bench.create_assigned(name, [[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    eventually(lambda: name in bench.list_topics())
    eventually(lambda: bench.describe_topic(name).leaders == (1, 2, 3))
    return name


def work_through(member: ShareMember, topic: str, bench: Client, disturb: Callable[[], None]) -> list[Delivery]:
    """Accept all records, half of them written after the disturbance."""
    for partition in range(PARTITIONS):
        fill(bench, topic, EACH, partition=partition)
    got = member.take()
    disturb()
    for partition in range(PARTITIONS):
        fill(bench, topic, EACH, partition=partition)
    until = time.monotonic() + WITHIN_S
    while len(dict.fromkeys(places(got))) < 2 * EACH * PARTITIONS:
        assert time.monotonic() < until, f"{len(dict.fromkeys(places(got)))} of {2 * EACH * PARTITIONS} records"
        got += member.poll()
    return got


def finish(client: Client, group: str, topic: str, *members: ShareMember) -> None:
    """Nothing is left once the last records are accepted; what was under way with a leader may come again."""
    until = time.monotonic() + WITHIN_S
    while count := left(client.bootstrap, group, topic):
        assert time.monotonic() < until, f"{count} records are left"
        for member in members:
            member.poll(0.2)


@feature("leaders are moved under a member: every record comes", "share_member")
def test_leaders_move(client: Client, wide: str, group: str, bench: Client, cluster: Cluster) -> None:
    def move() -> None:
        cluster.kill(1)
        eventually(lambda: cluster.leader_of(wide, 0) != 1)
        cluster.restart(1)
        cluster.wait_until_healthy()

    with client.share_member(wide, group) as member:
        got = work_through(member, wide, bench, move)
        bench.elect_preferred(wide)
        eventually(lambda: bench.describe_topic(wide).leaders[0] == 1)
        fill(bench, wide, EACH)
        until = time.monotonic() + WITHIN_S
        while (0, 3 * EACH - 1) not in places(got):
            assert time.monotonic() < until
            got += member.poll()
        finish(client, group, wide, member)
    assert len(dict.fromkeys(places(got))) == 2 * EACH * PARTITIONS + EACH


@feature("what was accepted does not come again from the next leader, what was released does", "share_member")
def test_next_leader(client: Client, topic: str, group: str, bench: Client, cluster: Cluster) -> None:
    fill(bench, topic, 10)
    leader = bench.describe_topic(topic).leaders[0]
    with client.share_member(topic, group, "explicit") as first:
        held = first.take()
        assert len(held) == 10
        first.acknowledge(held[:4], "accept")
        first.acknowledge(held[4:6], "release")
        first.acknowledge(held[6:8], "reject")
        first.commit()
        cluster.kill(leader)
        try:
            with client.share_member(topic, group) as second:
                again = second.drain(4, WITHIN_S)
                assert [(one.offset, one.times) for one in again] == [(4, 2), (5, 2), (8, 1), (9, 1)]
                finish(client, group, topic, second)
        finally:
            cluster.restart(leader)
            cluster.wait_until_healthy()


@feature(
    "a leader dies while a member holds records: what it accepts then holds, or the record comes again", "share_member"
)
def test_holder(client: Client, topic: str, group: str, bench: Client, cluster: Cluster) -> None:
    fill(bench, topic, 10)
    leader = bench.describe_topic(topic).leaders[0]
    with client.share_member(topic, group, "explicit") as member:
        held = member.take()
        cluster.kill(leader)
        try:
            member.acknowledge(held)
            with suppress(Refused):
                member.commit()
            until = time.monotonic() + WITHIN_S
            while left(client.bootstrap, group, topic):
                assert time.monotonic() < until
                member.acknowledge(member.poll())
                with suppress(Refused):
                    member.commit()
        finally:
            cluster.restart(leader)
            cluster.wait_until_healthy()


@feature("the group coordinator is killed: members go on, and new ones come", "share_member")
def test_coordinator_killed(client: Client, wide: str, group: str, bench: Client, cluster: Cluster) -> None:
    with client.share_member(wide, group) as member:
        assert member.poll() == []
        leaders = bench.describe_topic(OFFSETS_TOPIC).leaders
        coordinator = leaders[partition_of(group, len(leaders))]
        got = work_through(member, wide, bench, lambda: cluster.kill(coordinator))
        try:
            with client.share_member(wide, group) as other:
                until = time.monotonic() + WITHIN_S
                more: list[Delivery] = []
                while not more:
                    assert time.monotonic() < until, "the new member gets nothing"
                    for partition in range(PARTITIONS):
                        fill(bench, wide, 1, partition=partition)
                    got += member.poll(0.1)
                    more = other.poll(0.2)
                finish(client, group, wide, member, other)
        finally:
            cluster.restart(coordinator)
            cluster.wait_until_healthy()


@feature("every broker is killed and started once, under two members: nothing is lost", "share_member")
def test_rolling(client: Client, wide: str, group: str, bench: Client, cluster: Cluster) -> None:
    got: list[Delivery] = []
    written = 0
    with client.share_member(wide, group) as first, client.share_member(wide, group) as second:
        for broker in cluster.ids:
            cluster.kill(broker)
            for partition in range(PARTITIONS):
                fill(bench, wide, 10, partition=partition)
            written += 10
            got += first.poll() + second.poll()
            cluster.restart(broker)
            cluster.wait_until_healthy()
        until = time.monotonic() + WITHIN_S
        while len(dict.fromkeys(places(got))) < written * PARTITIONS:
            assert time.monotonic() < until, f"{len(dict.fromkeys(places(got)))} of {written * PARTITIONS} records"
            got += first.poll() + second.poll()
        finish(client, group, wide, first, second)
