"""Replica placement is even, uses different racks if there are enough, and is deterministic."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.cluster.brokers import Broker, Load
from tailrace.cluster.placement import ReplicaList, factor_for, place, widen
from tailrace.model.faults import InvalidReplicationFactor
from tailrace.model.ids import BrokerId
from tests.unit.cluster.cluster import registration

Racks = Sequence[str | None]


def brokers_in(racks: Racks) -> list[Broker]:
    return [registration(number + 1, rack=rack) for number, rack in enumerate(racks)]


def equal_racks(racks: int, members: int) -> Racks:
    return [f"r{number % racks}" for number in range(racks * members)]


def counted(places: Sequence[ReplicaList]) -> Load:
    load = Load()
    for one in places:
        load.add(one)
    return load


def off_even(counts: dict[BrokerId, int], brokers: int) -> float:
    """The largest distance of a broker from the average."""
    average = sum(counts.values()) / brokers
    return max(abs(counts.get(BrokerId(number), 0) - average) for number in range(1, brokers + 1))


uniform = st.tuples(st.integers(1, 7), st.integers(1, 4)).map(lambda shape: equal_racks(*shape)) | st.integers(
    1, 20
).map(lambda count: [None] * count)
any_racks = st.lists(st.sampled_from(["a", "b", "c", "d", None]), min_size=1, max_size=12)


@given(uniform, st.integers(1, 6), st.integers(1, 60))
def test_a_topic_spreads_within_one_of_even(racks: Racks, factor: int, partitions: int) -> None:
    factor = min(factor, len(racks))
    places = place(partitions, factor, brokers_in(racks), Load(), Load())
    load = counted(places)
    assert [len(dict.fromkeys(one)) for one in places] == [factor] * partitions
    assert off_even(load.preferred, len(racks)) <= 1
    assert off_even(load.replicas, len(racks)) <= 1


@given(uniform, st.integers(1, 6), st.lists(st.integers(1, 20), min_size=1, max_size=12))
def test_topics_one_after_the_other_stay_even(racks: Racks, factor: int, topics: list[int]) -> None:
    brokers, load = brokers_in(racks), Load()
    for partitions in topics:
        for one in place(partitions, min(factor, len(racks)), brokers, load, Load()):
            load.add(one)
    leads = [load.preferred.get(broker.id, 0) for broker in brokers]
    holds = [load.replicas.get(broker.id, 0) for broker in brokers]
    assert max(leads) - min(leads) <= 1
    assert max(holds) - min(holds) <= 3, (
        "each topic is even; what is left over of one may lie on what is left of others"
    )


@given(any_racks, st.integers(1, 6), st.lists(st.integers(0, 50), min_size=12, max_size=12), st.integers(1, 20))
def test_two_share_a_rack_only_when_no_other_is_left(
    racks: Racks, factor: int, held: list[int], partitions: int
) -> None:
    brokers = brokers_in(racks)
    load = Load(replicas={broker.id: held[number] for number, broker in enumerate(brokers)})
    sizes: dict[object, int] = {}
    for broker in brokers:
        sizes[broker.rack or broker.id] = sizes.get(broker.rack or broker.id, 0) + 1
    for one in place(partitions, min(factor, len(racks)), brokers, load, Load()):
        used = dict.fromkeys(sizes, 0)
        for number in one:
            broker = brokers[number - 1]
            used[broker.rack or broker.id] += 1
        least = min((used[rack] for rack in sizes if used[rack] < sizes[rack]), default=max(used.values()))
        assert max(used.values()) <= least + 1, (one, used)


@given(any_racks, st.integers(1, 6), st.integers(1, 20))
def test_the_same_brokers_get_the_same_partitions(racks: Racks, factor: int, partitions: int) -> None:
    wanted = (partitions, min(factor, len(racks)), brokers_in(racks))
    assert place(*wanted, Load(), Load()) == place(*wanted, Load(), Load())


def test_what_is_there_counts() -> None:
    brokers = brokers_in([None] * 4)
    held = counted([(BrokerId(1), BrokerId(2)), (BrokerId(2), BrokerId(1)), (BrokerId(3), BrokerId(1))])
    (only,) = place(1, 2, brokers, held, Load())
    assert only == (4, 3), "4 leads nothing and 3 holds least of the others"


def test_a_new_broker_does_not_get_a_whole_new_topic() -> None:
    brokers = brokers_in([None] * 4)
    held = counted([(BrokerId(1 + number % 3),) for number in range(300)])
    leaders = [one[0] for one in place(5, 1, brokers, held, Load())]
    assert sorted(leaders)[-2:] == [4, 4], "the remainder goes to the empty broker"
    assert [leaders.count(BrokerId(number)) for number in (1, 2, 3)] == [1, 1, 1]


def test_a_topic_grows_where_it_has_least() -> None:
    brokers = brokers_in([None] * 3)
    own = counted([(BrokerId(1),), (BrokerId(2),)])
    elsewhere = counted([(BrokerId(3),)] * 50)
    both = counted([(BrokerId(1),), (BrokerId(2),), *[(BrokerId(3),)] * 50])
    assert place(1, 1, brokers, both, own) == [(3,)]
    assert place(1, 1, brokers, elsewhere, Load()) != [(3,)]


def test_when_a_broker_dies_its_work_falls_on_all_others() -> None:
    places = place(300, 3, brokers_in([None] * 6), Load(), Load())
    for dead in range(1, 7):
        heirs = [one[1] for one in places if one[0] == dead]
        shares = [heirs.count(BrokerId(number)) for number in range(1, 7) if number != dead]
        assert min(shares) * 5 >= len(heirs) // 4, (dead, shares)


def test_no_two_neighbours_of_a_topic_have_one_leader() -> None:
    leaders = [one[0] for one in place(3, 3, brokers_in([None] * 3), Load(), Load())]
    assert all(one != next_one for one, next_one in pairwise(leaders))


@pytest.mark.parametrize(("live", "factor"), [(1, 1), (2, 2), (3, 3), (30, 3)])
def test_nobody_says_how_many(live: int, factor: int) -> None:
    assert factor_for(-1, live) == factor


@pytest.mark.parametrize(("wanted", "live"), [(4, 3), (0, 3), (-2, 3), (1, 0), (-1, 0)])
def test_what_cannot_be_met_is_refused_with_the_numbers(wanted: int, live: int) -> None:
    with pytest.raises(InvalidReplicationFactor, match=f"factor of {wanted} cannot be reached.* live brokers, {live}$"):
        factor_for(wanted, live)


@given(uniform, st.integers(1, 40))
def test_what_one_broker_held_is_spread_over_three_others_included(racks: Racks, partitions: int) -> None:
    if len(racks) < 3:
        return
    brokers = brokers_in(racks)
    narrow: list[ReplicaList] = [(BrokerId(1),)] * partitions
    wide = widen(narrow, 3, brokers, counted(narrow), counted(narrow))
    assert all(len(set(one)) == 3 and BrokerId(1) in one for one in wide)
    if len(set(racks) - {None}) >= 3:
        assert all(len({racks[broker - 1] for broker in one}) == 3 for one in wide)
    load = counted(wide)
    others = [
        load.replicas.get(BrokerId(number), 0)
        for number, rack in enumerate(racks, 1)
        if number > 1 and (rack is None or rack != racks[0])  # brokers in the rack of the first replica get none
    ]
    assert len(set(racks) - {None}) in (1, 2) or max(others) - min(others) <= 1
    assert max(load.preferred.values()) <= partitions / 2 + 1


def test_what_has_enough_replicas_stays_as_it_is() -> None:
    brokers = brokers_in([None] * 4)
    held = (BrokerId(2), BrokerId(3), BrokerId(1))
    assert set(widen([held], 3, brokers, counted([held]), counted([held]))[0]) == set(held)
