"""Share groups (KIP-932): members are processes of their own, which come, leave and die.

Each record is delivered until it is accepted, rejected, or delivered too often.
"""

import time
import uuid
from collections.abc import Iterable

import pytest

from tailrace.client.cluster import Cluster
from tailrace.client.share_admin import share_group_offsets
from tests.interop.client import Client, Code, Refused
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.messages import Compression, Message, Sending
from tests.interop.shapes import Setting, TopicPlan
from tests.interop.share_groups import with_cluster
from tests.interop.share_member import Delivery, ShareMember

LOCK_MS = 2000
SILENCE_S = 1.0  # after which a poll returns nothing if there is nothing


@pytest.fixture
def group(bench: Client) -> str:
    """A group that reads from the start."""
    return reads_from_the_start(bench)


def reads_from_the_start(bench: Client, **more: str) -> str:
    name = f"share-{uuid.uuid4().hex[:12]}"
    changes = {"share.auto.offset.reset": "earliest", **{key.replace("_", "."): one for key, one in more.items()}}
    bench.change_group_settings(name, changes)
    return name


def fill(bench: Client, topic: str, count: int, sending: Sending | None = None, partition: int = 0) -> None:
    messages = [Message(value=b"%d" % number) for number in range(count)]
    bench.produce(topic, messages, sending or Sending(), partition)


def offsets(delivered: Iterable[Delivery]) -> list[int]:
    return [one.offset for one in delivered]


def places(delivered: Iterable[Delivery]) -> list[tuple[int, int]]:
    return sorted((one.partition, one.offset) for one in delivered)


def times(delivered: Iterable[Delivery]) -> set[int]:
    return {one.times for one in delivered}


def left(bootstrap: str, group: str, topic: str) -> int:
    """How many records a group has not finished."""
    found: list[int] = []

    async def ask(cluster: Cluster) -> None:
        described = await share_group_offsets(cluster, group)
        found.extend(one.lag if one.lag is not None else -1 for place, one in described.items() if place.topic == topic)

    with_cluster(bootstrap, ask)
    return sum(found)


def nothing_comes(*members: ShareMember) -> None:
    until = time.monotonic() + SILENCE_S
    while time.monotonic() < until:
        assert [member.poll(SILENCE_S / 4) for member in members] == [[] for _ in members]


@feature("what is accepted or rejected is gone, what is released comes again", "share_member")
def test_outcomes(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 6)
    with client.share_member(topic, group, "explicit") as member:
        first = member.take()
        assert [(one.offset, one.times, one.value) for one in first] == [(at, 1, str(at)) for at in range(6)]
        member.acknowledge(first[:2], "accept")
        member.acknowledge(first[2:4], "reject")
        member.acknowledge(first[4:], "release")
        member.commit()
        again = member.take()
        assert [(one.offset, one.times) for one in again] == [(4, 2), (5, 2)]
        member.acknowledge(again)
        member.commit()
        assert left(client.bootstrap, group, topic) == 0
        nothing_comes(member)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@feature("single records of a batch come again, compression {compression}", "share_member")
def test_part_of_a_batch(client: Client, compression: Compression, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 20, Sending(compression=compression))
    with client.share_member(topic, group, "explicit") as member:
        first = member.take()
        assert offsets(first) == list(range(20))
        released = [one for one in first if one.offset % 3 == 1]
        member.acknowledge(released, "release")
        member.acknowledge([one for one in first if one not in released])
        assert [one.value for one in member.drain(len(released))] == [one.value for one in released]
        member.commit()
    assert left(client.bootstrap, group, topic) == 0


@feature("implicitly: a poll accepts what the last one returned, and so does a commit", "share_member")
def test_implicit(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group) as member:
        assert offsets(member.drain(10)) == list(range(10))
        nothing_comes(member)
        member.commit()
        assert left(client.bootstrap, group, topic) == 0


@feature("commit without waiting, and be told of it later", "share_member")
def test_commit_later(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group, "explicit") as member:
        member.acknowledge(member.take())
        member.commit_later()
        eventually(lambda: member.told() == [0])
        assert left(client.bootstrap, group, topic) == 0


@feature("a member that leaves releases what it did not acknowledge", "share_member")
def test_leave(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group, "explicit") as first:
        held = first.take()
        first.acknowledge(held[:4])
        first.commit()
        first.leave()
    with client.share_member(topic, group, "explicit") as second:
        again = second.take()
        assert (offsets(again), times(again)) == (list(range(4, 10)), {2})


@feature("a member is killed: another gets its records at once", "share_member")
def test_killed(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group, "explicit") as first:
        held = first.take()
        first.acknowledge(held[:4])
        first.commit()
        with client.share_member(topic, group) as second:
            nothing_comes(second)
            first.kill()
            again = second.drain(6)
            assert (offsets(again), times(again)) == (list(range(4, 10)), {2})


@feature("two members share one partition: each record comes to one of them", "share_member")
def test_share(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.share_member(topic, group) as first, client.share_member(topic, group) as second:
        share(bench, topic, first, second)


def share(bench: Client, topic: str, first: ShareMember, second: ShareMember) -> None:
    """Write until both have got something, and all has come."""
    seen: tuple[list[Delivery], list[Delivery]] = ([], [])
    until = time.monotonic() + 30
    sent = 0
    while len(seen[0]) + len(seen[1]) < sent or not all(seen):
        assert time.monotonic() < until, f"{len(seen[0])} and {len(seen[1])} of {sent} records"
        fill(bench, topic, 10)
        sent += 10
        for member, delivered in zip((first, second), seen, strict=True):
            delivered += member.poll(0.1)
    assert sorted(offsets(seen[0] + seen[1])) == list(range(sent))


@feature("members of this client and of confluent-kafka share one partition", "share_member")
def test_mixed(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.share_member(topic, group) as first, bench.share_member(topic, group) as second:
        share(bench, topic, first, second)


@feature("two groups on one topic: each gets every record", "share_member")
def test_two_groups(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with (
        client.share_member(topic, group) as one,
        client.share_member(topic, reads_from_the_start(bench)) as other,
    ):
        assert offsets(one.drain(10)) == offsets(other.drain(10)) == list(range(10))


@feature("several partitions, each with its own offsets", "share_member")
def test_partitions(client: Client, name: str, group: str, bench: Client) -> None:
    bench.create_topic(name, TopicPlan(partitions=3))
    for partition in range(3):
        fill(bench, name, 10, partition=partition)
    with client.share_member(name, group) as member:
        assert places(member.drain(30)) == [(partition, at) for partition in range(3) for at in range(10)]
        member.commit()
    assert left(client.bootstrap, group, name) == 0


@feature("more records than are locked at once", "share_member")
def test_many(client: Client, topic: str, group: str, bench: Client) -> None:
    for _ in range(5):
        fill(bench, topic, 1000)
    with client.share_member(topic, group) as member:
        assert offsets(member.drain(5000)) == list(range(5000))
        member.commit()
        assert left(client.bootstrap, group, topic) == 0


@feature("a lock ends: the record comes again, and what its first member says of it is refused", "share_member")
def test_lock_ends(client: Client, topic: str, bench: Client) -> None:
    group = reads_from_the_start(bench, share_record_lock_duration_ms=str(LOCK_MS))
    fill(bench, topic, 1)
    with client.share_member(topic, group, "explicit") as first:
        held = first.take()
        with client.share_member(topic, group, "explicit") as second:
            again = second.take()
            assert (offsets(again), again[0].times > 1) == ([0], True)
            first.acknowledge(held)
            with pytest.raises(Refused) as refusal:
                first.commit()
            assert refusal.value.code == Code.INVALID_RECORD_STATE
            second.acknowledge(again)
            second.commit()
    assert left(client.bootstrap, group, topic) == 0


@feature("a record that is released too often does not come again", "share_member")
def test_limit(client: Client, topic: str, bench: Client) -> None:
    group = reads_from_the_start(bench, share_delivery_count_limit="2")
    fill(bench, topic, 1)
    with client.share_member(topic, group, "explicit") as member:
        for count in (1, 2):
            delivered = member.take()
            assert times(delivered) == {count}
            member.acknowledge(delivered, "release")
            member.commit()
        nothing_comes(member)
    assert left(client.bootstrap, group, topic) == 0


@feature("a lock that is renewed does not end", "share_member", "renews locks")
def test_renew(client: Client, topic: str, bench: Client) -> None:
    group = reads_from_the_start(bench, share_record_lock_duration_ms=str(LOCK_MS))
    fill(bench, topic, 2)
    with client.share_member(topic, group, "explicit") as first:
        held = first.take()
        first.renew(held)
        with bench.share_member(topic, group) as second:
            until = time.monotonic() + 3 * LOCK_MS / 1000
            while time.monotonic() < until:
                first.renew(held)
                assert second.poll(LOCK_MS / 8000) == []
        first.acknowledge(held)
        first.commit()
    assert left(client.bootstrap, group, topic) == 0


@feature("one record at a time, though they were written as one batch", "share_member", "single records")
def test_single(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 6)
    with client.share_member(topic, group, "single") as first:
        held = first.take()
        assert offsets(held) == [0]
        with client.share_member(topic, group, "single") as second:
            assert offsets(second.drain(5)) == [1, 2, 3, 4, 5]
            second.commit()
        first.acknowledge(held)
        first.commit()
    assert left(client.bootstrap, group, topic) == 0


@feature("list and describe a share group, while it has members and after", "describe_share_group", "share_member")
def test_describe(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.share_member(topic, group) as member:
        member.poll()
        eventually(lambda: client.describe_share_group(group).members == ((0,),))
        assert client.describe_share_group(group).state == client.list_share_groups()[group] == "Stable"
        member.leave()
    eventually(lambda: client.describe_share_group(group).state == "Empty")
    assert client.describe_share_group(group).members == ()


@feature("how far a share group is; set it back; forget a topic", "share_offsets", "share_member")
def test_offsets(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with client.share_member(topic, group) as member:
        member.drain(10)
        with pytest.raises(Refused) as refusal:
            client.alter_share_offsets(group, topic, {0: 7})
        assert refusal.value.code == Code.NON_EMPTY_GROUP
        member.commit()
        member.leave()
    assert client.share_offsets(group, topic) == {0: (10, 0)}
    client.alter_share_offsets(group, topic, {0: 7})
    assert client.share_offsets(group, topic) == {0: (7, 3)}
    with client.share_member(topic, group) as member:
        assert offsets(member.drain(3)) == [7, 8, 9]
        member.leave()
    client.delete_share_offsets(group, topic)
    assert client.share_offsets(group, topic) == {}
    with client.share_member(topic, group) as member:
        assert offsets(member.drain(10)) == list(range(10))


@feature("delete a share group: not while it has members, and not twice", "delete_share_group", "share_member")
def test_delete(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.share_member(topic, group) as member:
        member.poll()
        eventually(lambda: client.list_share_groups().get(group) == "Stable")
        with pytest.raises(Refused) as refusal:
            client.delete_share_group(group)
        assert refusal.value.code == Code.NON_EMPTY_GROUP
        member.leave()
    client.delete_share_group(group)
    assert group not in client.list_share_groups()
    with pytest.raises(Refused) as refusal:
        client.delete_share_group(group)
    assert refusal.value.code == Code.GROUP_ID_NOT_FOUND


@feature("show, change and unset a group's settings; a bad value is refused", "group_settings")
def test_settings(client: Client, group: str) -> None:
    lock = "share.record.lock.duration.ms"
    assert client.group_settings(group)["share.auto.offset.reset"] == Setting(value="earliest", own=True)
    assert client.group_settings(group)[lock] == Setting(value="30000", own=False)
    client.change_group_settings(group, {lock: "20000"})
    eventually(lambda: client.group_settings(group)[lock] == Setting(value="20000", own=True))
    client.change_group_settings(group, {lock: None})
    eventually(lambda: client.group_settings(group)[lock] == Setting(value="30000", own=False))
    with pytest.raises(Refused) as refusal:
        client.change_group_settings(group, {lock: "1"})
    assert refusal.value.code == Code.INVALID_CONFIG
