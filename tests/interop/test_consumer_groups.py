"""Consumer groups of KIP-848 (`group.protocol=consumer`): the coordinator shares out the work."""

from tests.interop.client import Client
from tests.interop.conftest import eventually
from tests.interop.feature import feature
from tests.interop.member import Member, soon
from tests.interop.test_groups import (
    PARTITIONS,
    all_below,
    assert_kept,
    come_back,
    everything,
    fill,
    go_on,
    kill,
    read,
    share,
    shared,
)
from tests.interop.test_groups import group as group
from tests.interop.test_groups import topic as topic

USES = ("member", "consumer protocol")
PROTOCOL = "consumer"


@feature("two members share partitions: who keeps some never loses them; one leaves, the other takes its part", *USES)
def test_share(client: Client, topic: str, group: str, bench: Client) -> None:
    first, second = share(client, topic, group, bench, PROTOCOL)
    assert_kept(first, second)


@feature("a member reads everything; the next goes on where it stopped", *USES)
def test_goes_on(client: Client, topic: str, group: str, bench: Client) -> None:
    go_on(client, topic, group, bench, PROTOCOL)


@feature("a member is killed: another takes its part when its session is over, and nothing is missed", *USES)
def test_killed(client: Client, topic: str, group: str, bench: Client) -> None:
    kill(client, topic, group, bench, PROTOCOL)


@feature("a static member leaves for a while and comes back: nobody else notices", "leaves for a while", *USES)
def test_static(client: Client, topic: str, group: str, bench: Client) -> None:
    come_back(client, topic, group, bench, PROTOCOL, Member.leave)


@feature("a classic member shares partitions with one of this protocol, which leaves: the first takes all", "member")
def test_migration(client: Client, topic: str, group: str, bench: Client) -> None:
    migrate(client, topic, group, bench, "range")


@feature("the same with a classic member that is cooperative", "member", "cooperative-sticky")
def test_cooperative_migration(client: Client, topic: str, group: str, bench: Client) -> None:
    migrate(client, topic, group, bench, "cooperative-sticky")


def migrate(client: Client, topic: str, group: str, bench: Client, strategy: str) -> None:
    fill(bench, topic, 10)
    with client.member(topic, group, strategy) as old:
        soon(lambda: old.assigned == everything and len(old.got) == 10 * PARTITIONS)
        with bench.member(topic, group, PROTOCOL) as new:
            soon(lambda: shared(old, new))
            fill(bench, topic, 10)
            soon(lambda: sorted(dict.fromkeys(read(old, new))) == all_below(20))
            new.leave()
        soon(lambda: old.assigned == everything)
        fill(bench, topic, 5)
        soon(lambda: sorted(dict.fromkeys(read(old, new))) == all_below(25))


@feature("subscribe by a regular expression that the broker matches", *USES)
def test_expression(client: Client, topic: str, group: str, bench: Client) -> None:
    fill(bench, topic, 5)
    with client.member(f"^{topic[:-1]}.*", group, PROTOCOL) as member:
        soon(lambda: read(member) == all_below(5))


@feature("partitions are added to a topic, and its readers take them up", "create_partitions", *USES)
def test_grows(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.member(topic, group, PROTOCOL) as first, client.member(topic, group, PROTOCOL) as second:
        soon(lambda: shared(first, second))
        client.create_partitions(topic, PARTITIONS + 2)
        eventually(lambda: len(bench.describe_topic(topic).partitions) == PARTITIONS + 2)
        soon(lambda: first.assigned | second.assigned == frozenset(range(PARTITIONS + 2)))
        soon(lambda: len(first.assigned) == len(second.assigned) == 3)


@feature("list and describe such a group, while it has members and after", "list_groups", "describe_group", *USES)
def test_describe(client: Client, topic: str, group: str, bench: Client) -> None:
    with client.member(topic, group, PROTOCOL) as member:
        soon(lambda: member.assigned == everything)
        assert client.list_groups()[group] == "Stable"
        shape = client.describe_group(group)
        assert (shape.state, shape.protocol, len(shape.clients)) == ("Stable", "uniform", 1)
        member.leave()
    soon(lambda: client.describe_group(group).state == "Empty")
    assert client.describe_group(group).clients == ()
