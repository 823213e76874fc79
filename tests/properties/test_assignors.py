"""How work is shared out, for any members, topics and histories: all of it, to its readers, evenly, and sticky."""

from hypothesis import given, settings
from hypothesis import strategies as some

from tailrace.groups.consumer.assigning import ASSIGNORS
from tailrace.groups.consumer.shares import Share
from tailrace.groups.consumer.sharing import Wish, uniform
from tailrace.model.ids import Id, TopicPartition

ids = [Id(bytes([number]) * 16) for number in range(1, 6)]
topics = some.dictionaries(some.sampled_from(ids), some.integers(0, 12), min_size=1)
names = some.lists(some.sampled_from("abcdefghij"), unique=True, min_size=1)


@some.composite
def wishes(draw: some.DrawFn, *, same: bool = False) -> tuple[dict[str, Wish], dict[Id, int]]:
    partitions = draw(topics)
    all_topics = tuple(sorted(partitions))
    found = {}
    for name in draw(names):
        reads = all_topics if same else tuple(one for one in all_topics if draw(some.booleans()))
        has = draw(some.lists(some.builds(TopicPartition, some.sampled_from(ids), some.integers(0, 14)), unique=True))
        found[name] = Wish(draw(some.none() | some.just("i" + name)), reads, tuple(sorted(has)))
    read = {topic: None for wish in found.values() for topic in wish.topics}
    return found, {topic: count for topic, count in partitions.items() if topic in read}


def sizes(shares: dict[str, Share]) -> list[int]:
    return [len(one) for one in shares.values()]


@given(wishes(), some.sampled_from(sorted(ASSIGNORS)))
def test_everything_goes_to_somebody_who_reads_it_and_to_nobody_else(
    case: tuple[dict[str, Wish], dict[Id, int]], name: str
) -> None:
    members, partitions = case
    shares = ASSIGNORS[name](members, partitions)
    given_out = [one for share in shares.values() for one in share]
    assert sorted(given_out) == [
        TopicPartition(topic, n) for topic in sorted(partitions) for n in range(partitions[topic])
    ]
    for member, share in shares.items():
        assert list(share) == sorted(share)
        assert {one.topic_id for one in share} <= set(members[member].topics)


@given(wishes(same=True))
def test_uniform_shares_differ_by_one_at_most_where_all_read_the_same(
    case: tuple[dict[str, Wish], dict[Id, int]],
) -> None:
    found = sizes(uniform(*case))
    assert max(found) - min(found) <= 1


@given(wishes())
def test_no_move_between_two_readers_would_make_uniform_shares_more_even(
    case: tuple[dict[str, Wish], dict[Id, int]],
) -> None:
    members, partitions = case
    shares = uniform(members, partitions)
    for giver, share in shares.items():
        for one in share:
            for taker, wish in members.items():
                if one.topic_id in wish.topics:
                    assert len(share) - len(shares[taker]) <= 1, f"{one} should go from {giver} to {taker}"


@given(wishes())
def test_what_was_shared_out_once_stays_as_it_is(case: tuple[dict[str, Wish], dict[Id, int]]) -> None:
    members, partitions = case
    first = uniform(members, partitions)
    again = {name: wish._replace(has=first[name]) for name, wish in members.items()}
    assert uniform(again, partitions) == first


@given(wishes(same=True))
@settings(max_examples=50)
def test_who_comes_takes_only_its_part_and_who_goes_leaves_only_its_own(
    case: tuple[dict[str, Wish], dict[Id, int]],
) -> None:
    members, partitions = case
    first = uniform(members, partitions)
    before = {name: wish._replace(has=first[name]) for name, wish in members.items()}
    wish = next(iter(members.values()))
    more = uniform({**before, "z": wish._replace(has=())}, partitions)
    for name in before:
        assert set(more[name]) <= set(first[name])
    gone = next(iter(before))
    fewer = uniform({name: one for name, one in before.items() if name != gone}, partitions)
    for name in fewer:
        assert set(fewer[name]) >= set(first[name])


@given(wishes(same=True))
def test_range_cuts_topics_of_a_size_at_the_same_places(case: tuple[dict[str, Wish], dict[Id, int]]) -> None:
    members, partitions = case
    same = dict.fromkeys(partitions, 7)
    for share in ASSIGNORS["range"](members, same).values():
        by_topic = [[one.partition for one in share if one.topic_id == topic] for topic in same]
        assert all(one == by_topic[0] for one in by_topic)
        assert not by_topic or by_topic[0] == list(range(by_topic[0][0], by_topic[0][-1] + 1)) if by_topic[0] else True
