"""Share groups and what happens to their topics: transactions, new partitions, deletion, the end of the broker."""

import uuid

import pytest

from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.shapes import TopicPlan
from tests.interop.share_member import Delivery
from tests.interop.test_share_members import fill, left, nothing_comes, places, reads_from_the_start
from tests.interop.test_share_members import group as group

pytestmark = pytest.mark.long

DELETED_S = 60.0  # members hear of a new topic with their heartbeats and their metadata


def values(delivered: list[Delivery]) -> list[str]:
    return [one.value for one in delivered]


def write_transactions(bench: Client, topic: str) -> None:
    with bench.transactor(f"transaction-{uuid.uuid4().hex[:12]}") as producer:
        for value in (b"a", b"b", b"c"):
            producer.begin()
            producer.write(topic, value, value + b" again")
            producer.abort() if value == b"b" else producer.commit()


@feature("what was aborted comes to groups of isolation level read_uncommitted", "share_member")
def test_uncommitted(client: Client, topic: str, group: str, bench: Client) -> None:
    write_transactions(bench, topic)
    with client.share_member(topic, group) as member:
        assert values(member.drain(6)) == ["a", "a again", "b", "b again", "c", "c again"]
        member.commit()
        eventually(lambda: left_after_a_poll(client, group, topic, member.poll) == 0)


@feature(
    "what was aborted does not come to groups of isolation level read_committed; what is open waits", "share_member"
)
def test_committed(client: Client, topic: str, bench: Client) -> None:
    group = reads_from_the_start(bench, share_isolation_level="read_committed")
    write_transactions(bench, topic)
    with client.share_member(topic, group) as member:
        assert values(member.drain(4)) == ["a", "a again", "c", "c again"]
        with bench.transactor(f"transaction-{uuid.uuid4().hex[:12]}") as producer:
            producer.begin()
            producer.write(topic, b"d")
            fill(bench, topic, 2)
            nothing_comes(member)
            producer.commit()
        assert values(member.drain(3)) == ["d", "0", "1"]
        member.commit()
        eventually(lambda: left_after_a_poll(client, group, topic, member.poll) == 0)


def left_after_a_poll(client: Client, group: str, topic: str, poll: object) -> int:
    """Polls acknowledge the offsets without records."""
    assert callable(poll)
    assert poll(0.2) == []
    return left(client.bootstrap, group, topic)


@feature("partitions are added to a topic, and its members get their records", "share_member")
def test_grows(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with client.share_member(topic, group) as member:
        member.drain(5)
        bench.create_partitions(topic, 3)
        eventually(lambda: len(bench.describe_topic(topic).partitions) == 3)
        for partition in (1, 2):
            fill(bench, topic, 5, partition=partition)
        assert places(member.drain(10)) == [(partition, at) for partition in (1, 2) for at in range(5)]


@feature("subscribe to a topic that is made later", "share_member")
def test_made_later(client: Client, name: str, group: str, bench: Client) -> None:
    with client.share_member(name, group) as member:
        assert member.poll() == []
        bench.create_topic(name)
        fill(bench, name, 5)
        assert places(member.drain(5, DELETED_S)) == [(0, at) for at in range(5)]


@feature(
    "a topic is deleted and made again under its members, who get the new one's records",
    "share_member",
    "follows a topic made again",
)
def test_made_again(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group) as member:
        member.drain(10)
        bench.delete_topic(topic)
        eventually(lambda: topic not in bench.list_topics())
        bench.create_topic(topic, TopicPlan(partitions=1))
        fill(bench, topic, 3)
        assert places(member.drain(3, DELETED_S)) == [(0, at) for at in range(3)]


@feature("records are deleted under a member: what comes next is what is left", "share_member")
def test_records_deleted(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    bench.delete_records(topic, 4)
    with client.share_member(topic, group) as member:
        assert places(member.drain(6)) == [(0, at) for at in range(4, 10)]
        fill(bench, topic, 10)
        bench.delete_records(topic, 20)
        fill(bench, topic, 2)
        while (0, 21) not in places(member.take()):
            pass
        member.commit()
        eventually(lambda: left(client.bootstrap, group, topic) == 0)
