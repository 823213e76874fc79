"""Consumer groups: members are processes of their own, which come, leave and die.

Each message must be read at least once, whatever happens to whom; and where nobody dies, exactly once.
"""

import uuid
from collections.abc import Callable, Sequence

import pytest

from tests.interop.client import Client, Code, Refused
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.member import Member, soon
from tests.interop.messages import Message
from tests.interop.shapes import TopicPlan

PARTITIONS = 4
everything = frozenset(range(PARTITIONS))


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(name: str, bench: Client) -> str:
    """A topic with several partitions."""
    bench.create_topic(name, TopicPlan(partitions=PARTITIONS))
    eventually(lambda: name in bench.list_topics())
    return name


def fill(bench: Client, topic: str, each: int) -> None:
    for partition in range(PARTITIONS):
        bench.produce(topic, [Message(value=b"v")] * each, partition=partition)


def read(*members: Member) -> list[tuple[int, int]]:
    return sorted(one for member in members for one in member.got)


def all_below(each: int, start: int = 0) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(PARTITIONS) for offset in range(start, each)]


def shared(first: Member, second: Member) -> bool:
    return len(first.assigned) == len(second.assigned) == 2 and first.assigned | second.assigned == everything


def go_on(client: Client, topic: str, group: str, bench: Client, strategy: str) -> None:
    """A member reads everything and leaves; the next goes on where it stopped."""
    fill(bench, topic, 10)
    with client.member(topic, group, strategy) as first:
        soon(lambda: read(first) == all_below(10))
        first.leave()
    fill(bench, topic, 5)
    with client.member(topic, group, strategy) as second:
        soon(lambda: read(second) == all_below(15, start=10))


@feature("a member reads everything; the next goes on where it stopped", "member")
def test_goes_on(client: Client, topic: str, group: str, bench: Client) -> None:
    go_on(client, topic, group, bench, "range")


@feature("write with keys, and its own members read it all", "write_keyed", "member")
def test_write_keyed(client: Client, topic: str, group: str, bench: Client) -> None:
    client.write_keyed(topic, [f"key-{number}" for number in range(100)])
    with client.member(topic, group) as member:
        soon(lambda: len(member.got) >= 100)
        member.leave()
    ends = [bench.watermarks(topic, partition)[1] for partition in range(PARTITIONS)]
    assert read(member) == [(partition, offset) for partition in range(PARTITIONS) for offset in range(ends[partition])]
    assert min(ends) > 0


def share(client: Client, topic: str, group: str, bench: Client, strategy: str) -> Sequence[Member]:
    """Two members share the work, then one leaves, and the other does all of it."""
    fill(bench, topic, 10)
    with client.member(topic, group, strategy) as first:
        soon(lambda: first.assigned == everything and len(first.got) == 10 * PARTITIONS)
        with client.member(topic, group, strategy) as second:
            soon(lambda: shared(first, second))
            fill(bench, topic, 10)
            soon(lambda: len(read(first, second)) == 20 * PARTITIONS)
            second.leave()
        soon(lambda: first.assigned == everything)
        fill(bench, topic, 5)
        soon(lambda: len(read(first, second)) >= 25 * PARTITIONS)
        first.leave()
    assert read(first, second) == all_below(25)
    return first, second


def assert_kept(first: Member, second: Member) -> None:
    """The first never lost the partitions that it kept when the second came."""
    kept = everything - max(second.assignments, key=len)
    had = first.assignments[first.assignments.index(everything) :]
    assert all(kept <= one for one in had if one), had


@feature("two members share partitions by range; one leaves, the other takes its part", "member")
def test_range(client: Client, topic: str, group: str, bench: Client) -> None:
    _, second = share(client, topic, group, bench, "range")
    assert second.assigned in (frozenset({0, 1}), frozenset({2, 3}))


@feature("two members share partitions by round-robin; one leaves, the other takes its part", "member")
def test_roundrobin(client: Client, topic: str, group: str, bench: Client) -> None:
    _, second = share(client, topic, group, bench, "roundrobin")
    assert second.assigned in (frozenset({0, 2}), frozenset({1, 3}))


@feature(
    "two members share partitions, cooperative-sticky: who keeps some never loses them", "member", "cooperative-sticky"
)
def test_cooperative(client: Client, topic: str, group: str, bench: Client) -> None:
    first, second = share(client, topic, group, bench, "cooperative-sticky")
    assert_kept(first, second)


def kill(client: Client, topic: str, group: str, bench: Client, strategy: str) -> None:
    """One of two members is killed; the other takes its part when its session is over."""
    fill(bench, topic, 10)
    with client.member(topic, group, strategy) as first, client.member(topic, group, strategy) as second:
        soon(lambda: shared(first, second))
        soon(lambda: len(read(first, second)) >= 10 * PARTITIONS)
        second.kill()
        fill(bench, topic, 10)
        soon(lambda: first.assigned == everything)
        soon(lambda: sorted(dict.fromkeys(read(first, second))) == all_below(20))


@feature("a member is killed: another takes its part when its session is over, and nothing is missed", "member")
def test_killed(client: Client, topic: str, group: str, bench: Client) -> None:
    kill(client, topic, group, bench, "range")


def come_back(
    client: Client, topic: str, group: str, bench: Client, strategy: str, stop: Callable[[Member], None]
) -> None:
    """One of two static members stops and comes back: it has its partitions again, and the other keeps its own."""
    with client.member(topic, group, strategy, instance="one") as first:
        with client.member(topic, group, strategy, instance="two") as second:
            soon(lambda: shared(first, second))
            changes, had = len(first.assignments), second.assigned
            stop(second)
        with client.member(topic, group, strategy, instance="two") as again:
            soon(lambda: again.assigned == had)
            fill(bench, topic, 10)
            soon(lambda: sorted(dict.fromkeys(read(first, again))) == all_below(10))
        assert len(first.assignments) == changes


@feature("a static member is killed and comes back within its session: nobody else notices", "member", "static members")
def test_static(client: Client, topic: str, group: str, bench: Client) -> None:
    come_back(client, topic, group, bench, "range", Member.kill)


@feature("list and describe a group, while it has members and after", "list_groups", "describe_group")
def test_describe(client: Client, topic: str, group: str, bench: Client) -> None:
    with bench.member(topic, group) as member:
        soon(lambda: member.assigned == everything)
        assert client.list_groups()[group] in ("Stable", "")
        shape = client.describe_group(group)
        assert (shape.state, shape.protocol, shape.clients) == ("Stable", "range", ("rdkafka",))
        member.leave()
    soon(lambda: client.describe_group(group).state == "Empty")
    assert client.describe_group(group).clients == ()


@feature("how far a group has read", "committed")
def test_committed(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    with bench.member(topic, group) as member:
        soon(lambda: read(member) == all_below(10))
        member.leave()
    assert client.committed(group, topic) == dict.fromkeys(range(PARTITIONS), 10)


@feature("set back how far a group has read", "commit", "committed")
def test_commit(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 10)
    client.commit(group, topic, dict.fromkeys(range(PARTITIONS), 7))
    assert client.committed(group, topic) == dict.fromkeys(range(PARTITIONS), 7)
    with bench.member(topic, group) as member:
        soon(lambda: read(member) == all_below(10, start=7))


@feature("delete a group: not while it has members, and not twice", "delete_group")
def test_delete(client: Client, topic: str, group: str, bench: Client) -> None:
    with bench.member(topic, group) as member:
        soon(lambda: member.assigned == everything)
        with pytest.raises(Refused) as refusal:
            client.delete_group(group)
        assert refusal.value.code == Code.NON_EMPTY_GROUP
        member.leave()
    client.delete_group(group)
    with pytest.raises(Refused) as refusal:
        client.delete_group(group)
    assert refusal.value.code == Code.GROUP_ID_NOT_FOUND
