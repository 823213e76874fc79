"""The server-side assignors, for any members, topics and previous targets: complete, valid, balanced and sticky."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.groups.consumer.assignors import ASSIGNORS, AssignorMember, uniform_assignor
from tailrace.groups.consumer.partition_sets import PartitionSet
from tailrace.groups.share.assignor import simple_assignor
from tailrace.model.ids import Id, TopicPartition

Case = tuple[dict[str, AssignorMember], dict[Id, int]]  # members, and partition counts by topic

topic_ids = [Id(bytes([number]) * 16) for number in range(1, 6)]
topics = st.dictionaries(st.sampled_from(topic_ids), st.integers(0, 12), min_size=1)
names = st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1)
any_partition = st.builds(TopicPartition, st.sampled_from(topic_ids), st.integers(0, 14))


@st.composite
def cases(draw: st.DrawFn, *, same_topics: bool = False) -> Case:
    partitions = draw(topics)
    all_topics = tuple(sorted(partitions))
    members = {}
    for name in draw(names):
        subscribed = all_topics if same_topics else tuple(one for one in all_topics if draw(st.booleans()))
        previous = draw(st.lists(any_partition, unique=True))
        members[name] = AssignorMember(draw(st.none() | st.just("i" + name)), subscribed, tuple(sorted(previous)))
    used = {topic: None for member in members.values() for topic in member.topics}
    return members, {topic: count for topic, count in partitions.items() if topic in used}


def sizes(assignments: dict[str, PartitionSet]) -> list[int]:
    return [len(one) for one in assignments.values()]


def with_previous(members: dict[str, AssignorMember], targets: dict[str, PartitionSet]) -> dict[str, AssignorMember]:
    return {name: member._replace(previous=targets[name]) for name, member in members.items()}


@given(cases(), st.sampled_from(sorted(ASSIGNORS)))
def test_every_partition_is_assigned_to_exactly_one_subscriber(case: Case, name: str) -> None:
    members, partitions = case
    assignments = ASSIGNORS[name](members, partitions)
    assigned = [one for some in assignments.values() for one in some]
    assert sorted(assigned) == [
        TopicPartition(topic, number) for topic in sorted(partitions) for number in range(partitions[topic])
    ]
    for member, some in assignments.items():
        assert list(some) == sorted(some)
        assert {one.topic_id for one in some} <= set(members[member].topics)


@given(cases(same_topics=True))
def test_uniform_assignments_differ_by_at_most_one_if_all_subscribe_to_the_same_topics(case: Case) -> None:
    found = sizes(uniform_assignor(*case))
    assert max(found) - min(found) <= 1


@given(cases())
def test_no_move_between_two_subscribers_would_balance_uniform_assignments_better(case: Case) -> None:
    members, partitions = case
    assignments = uniform_assignor(members, partitions)
    for giver, some in assignments.items():
        for one in some:
            for taker, member in members.items():
                if one.topic_id in member.topics:
                    assert len(some) - len(assignments[taker]) <= 1, f"{one} should move from {giver} to {taker}"


@given(cases())
def test_uniform_does_not_change_its_own_assignment(case: Case) -> None:
    members, partitions = case
    first = uniform_assignor(members, partitions)
    assert uniform_assignor(with_previous(members, first), partitions) == first


@given(cases(same_topics=True))
@settings(max_examples=50)
def test_uniform_moves_partitions_only_to_a_new_member_or_from_one_that_left(case: Case) -> None:
    members, partitions = case
    first = uniform_assignor(members, partitions)
    before = with_previous(members, first)
    new_member = next(iter(members.values()))._replace(previous=())
    joined = uniform_assignor({**before, "z": new_member}, partitions)
    for name in before:
        assert set(joined[name]) <= set(first[name])
    leaving = next(iter(before))
    left = uniform_assignor({name: one for name, one in before.items() if name != leaving}, partitions)
    for name in left:
        assert set(left[name]) >= set(first[name])


@given(cases(same_topics=True))
def test_range_cuts_topics_of_equal_size_at_the_same_places(case: Case) -> None:
    members, partitions = case
    equal = dict.fromkeys(partitions, 7)
    for some in ASSIGNORS["range"](members, equal).values():
        by_topic = [[one.partition for one in some if one.topic_id == topic] for topic in equal]
        assert all(one == by_topic[0] for one in by_topic)
        assert not by_topic or by_topic[0] == list(range(by_topic[0][0], by_topic[0][-1] + 1)) if by_topic[0] else True


# `simple`, of share groups


def every_partition(partitions: dict[Id, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in sorted(partitions) for number in range(partitions[topic])]


def simple(members: dict[str, AssignorMember], partitions: dict[Id, int]) -> dict[str, PartitionSet]:
    return simple_assignor(members, every_partition(partitions))


def readers(assignments: dict[str, PartitionSet]) -> dict[TopicPartition, int]:
    return dict(Counter(one for some in assignments.values() for one in some))


@given(cases())
def test_simple_assigns_every_partition_to_subscribers_and_leaves_no_subscriber_idle(case: Case) -> None:
    members, partitions = case
    assignments = simple(members, partitions)
    assert sorted(readers(assignments)) == every_partition(partitions)
    for name, some in assignments.items():
        assert list(some) == sorted(set(some))
        assert {one.topic_id for one in some} <= set(members[name].topics)
        assert some or not any(partitions[topic] for topic in members[name].topics)


@given(cases(same_topics=True))
def test_simple_gives_equal_subscribers_as_many_partitions_and_partitions_as_many_members(case: Case) -> None:
    members, partitions = case
    assignments = simple(members, partitions)
    found, total = sizes(assignments), sum(partitions.values())
    assert max(found) - min(found) <= 1
    assert set(readers(assignments).values()) <= {-(-len(members) // total) if total else 0}


@given(cases())
def test_simple_does_not_change_its_own_assignment(case: Case) -> None:
    members, partitions = case
    first = simple(members, partitions)
    assert simple(with_previous(members, first), partitions) == first


@given(cases(same_topics=True))
@settings(max_examples=50)
def test_simple_moves_no_more_than_a_new_member_needs_while_partitions_have_one_member(case: Case) -> None:
    members, partitions = case
    first = simple(members, partitions)
    joined = simple(
        {**with_previous(members, first), "z": next(iter(members.values()))._replace(previous=())}, partitions
    )
    if sum(partitions.values()) > len(members):
        for name in members:
            assert set(joined[name]) <= set(first[name])
    else:
        for name in members:  # some get a second partition, or give theirs away, and nobody changes the first one
            assert not first[name] or set(joined[name]) & set(first[name])
