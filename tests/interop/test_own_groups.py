"""Groups of our own client, against our broker and against Apache Kafka: members are processes, and one is killed."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from tailrace.client.group_admin import describe_group
from tests.interop.conftest import eventually
from tests.interop.drivers.own import OwnClient
from tests.interop.member import Member, soon
from tests.interop.messages import Message
from tests.interop.shapes import TopicPlan
from tests.interop.test_consumer_groups import migrate
from tests.interop.test_groups import come_back, go_on, share

PARTITIONS = 6
SHARED_PARTITIONS = 4  # of the tests that all clients have
EACH = 10
everything = frozenset(range(PARTITIONS))
PROTOCOLS = {"range": "classic", "consumer": "consumer"}
ONE_OF_EACH = pytest.mark.parametrize("strategy", PROTOCOLS)
STRATEGIES = pytest.mark.parametrize("strategy", ["range", "roundrobin", "consumer"])


@pytest.fixture(scope="module")
def client(each_bootstrap: str) -> Iterator[OwnClient]:
    with closing(OwnClient(each_bootstrap)) as found:
        yield found


def new_topic(client: OwnClient, partitions: int) -> str:
    name = f"t-{uuid.uuid4().hex[:12]}"
    client.create_topic(name, TopicPlan(partitions=partitions))
    eventually(lambda: name in client.list_topics())
    return name


@pytest.fixture
def topic(client: OwnClient) -> str:
    return new_topic(client, PARTITIONS)


@pytest.fixture
def small_topic(client: OwnClient) -> str:
    return new_topic(client, SHARED_PARTITIONS)


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:12]}"


def fill(client: OwnClient, topic: str) -> None:
    for partition in range(PARTITIONS):
        client.produce(topic, [Message(value=b"v")] * EACH, partition=partition)


def read(*members: Member) -> list[tuple[int, int]]:
    return sorted(one for member in members for one in member.got)


def offsets(end: int, start: int = 0) -> list[tuple[int, int]]:
    return [(partition, offset) for partition in range(PARTITIONS) for offset in range(start, end)]


def shared(*members: Member) -> bool:
    """Each has the same number of partitions, none is with two members, and none is missing."""
    owned = sorted(number for one in members for number in one.assigned)
    return owned == sorted(everything) and len({len(one.assigned) for one in members}) == 1


def all_committed(client: OwnClient, group: str, topic: str, offset: int) -> bool:
    return client.committed(group, topic) == dict.fromkeys(everything, offset)


@contextmanager
def three(client: OwnClient, topic: str, group: str, strategy: str) -> Iterator[tuple[Member, Member, Member]]:
    with (
        client.member(topic, group, strategy) as first,
        client.member(topic, group, strategy) as second,
        client.member(topic, group, strategy) as third,
    ):
        soon(lambda: shared(first, second, third))
        described = client.ask(describe_group(client.cluster, group))
        assert described is not None
        assert (described.type, len(described.members)) == (PROTOCOLS[strategy], 3)
        yield first, second, third


@ONE_OF_EACH
def test_the_others_go_on_where_a_killed_member_has_committed(
    client: OwnClient, topic: str, group: str, strategy: str
) -> None:
    with three(client, topic, group, strategy) as (first, second, third):
        fill(client, topic)
        soon(lambda: all_committed(client, group, topic, EACH))
        third.kill()
        fill(client, topic)
        soon(lambda: shared(first, second))
        soon(lambda: all_committed(client, group, topic, 2 * EACH))
        first.leave()
        second.leave()
    assert read(first, second, third) == offsets(2 * EACH)
    with client.member(topic, group, strategy) as last:
        soon(lambda: last.assigned == everything)
        fill(client, topic)
        soon(lambda: read(last) == offsets(3 * EACH, start=2 * EACH))


@ONE_OF_EACH
def test_nothing_is_missed_when_a_member_is_killed_while_records_come(
    client: OwnClient, topic: str, group: str, strategy: str
) -> None:
    over, rounds = threading.Event(), 0

    def write() -> None:
        nonlocal rounds
        while not over.is_set():
            fill(client, topic)
            rounds += 1

    writer = threading.Thread(target=write)
    with three(client, topic, group, strategy) as (first, second, third):
        writer.start()
        try:
            soon(lambda: len(third.got) > 5 * EACH)
            third.kill()
            soon(lambda: shared(first, second))
        finally:
            over.set()
            writer.join()
        soon(lambda: all_committed(client, group, topic, rounds * EACH))
    assert sorted(dict.fromkeys(read(first, second, third))) == offsets(rounds * EACH)


@ONE_OF_EACH
def test_a_member_that_comes_back_after_its_session_shares_again(
    client: OwnClient, topic: str, group: str, strategy: str
) -> None:
    with three(client, topic, group, strategy) as (first, second, third):
        fill(client, topic)
        soon(lambda: all_committed(client, group, topic, EACH))
        third.pause()
        soon(lambda: shared(first, second))
        fill(client, topic)
        soon(lambda: all_committed(client, group, topic, 2 * EACH))
        third.resume()
        soon(lambda: shared(first, second, third))
        fill(client, topic)
        soon(lambda: all_committed(client, group, topic, 3 * EACH))
    assert sorted(dict.fromkeys(read(first, second, third))) == offsets(3 * EACH)


@STRATEGIES
def test_the_next_member_goes_on(client: OwnClient, small_topic: str, group: str, strategy: str) -> None:
    go_on(client, small_topic, group, client, strategy)


@STRATEGIES
def test_two_members_share(client: OwnClient, small_topic: str, group: str, strategy: str) -> None:
    share(client, small_topic, group, client, strategy)


def test_a_static_classic_member_is_killed_and_comes_back(client: OwnClient, small_topic: str, group: str) -> None:
    come_back(client, small_topic, group, client, "range", Member.kill)


def test_a_static_consumer_member_leaves_and_comes_back(client: OwnClient, small_topic: str, group: str) -> None:
    come_back(client, small_topic, group, client, "consumer", Member.leave)


def test_members_of_both_protocols_share(client: OwnClient, small_topic: str, group: str) -> None:
    migrate(client, small_topic, group, client, "range")
