"""Lists of state batches against a dictionary with one entry per offset."""

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.queues.state import DeliveryState, StateBatch
from tailrace.queues.state_batches import cut_below, merge

Offsets = dict[int, tuple[Any, ...]]  # state, count and not before of each offset

stored_states = st.sampled_from([state for state in DeliveryState if state is not DeliveryState.ACQUIRED])


@st.composite
def ascending(draw: st.DrawFn) -> list[StateBatch]:
    """A list of batches as a leader writes it."""
    found = []
    position = draw(st.integers(0, 30))
    for _ in range(draw(st.integers(0, 6))):
        first = position + draw(st.integers(0, 4))
        last = first + draw(st.integers(0, 8))
        state, count = draw(stored_states), draw(st.integers(0, 2))
        found.append(StateBatch(first, last, state, count, draw(st.sampled_from([-1, 7]))))
        position = last + 1
    return found


def by_offset(batches: list[StateBatch]) -> Offsets:
    return {offset: tuple(one[2:]) for one in batches for offset in range(one.first, one.last + 1)}


def merged(known: Offsets, new: Offsets) -> Offsets:
    found = dict(known)
    for offset, (state, count, not_before) in new.items():
        before = known.get(offset)
        if before is None or (before[1], before[0]) <= (count, state):
            found[offset] = (state, count, not_before)
    return found


def assert_tidy(batches: list[StateBatch]) -> None:
    for before, after in pairwise(batches):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:], "neighbours that say the same are one"


@given(st.lists(st.tuples(ascending(), st.integers(0, 40)), max_size=8))
def test_batches_say_what_a_dictionary_says(steps: list[tuple[list[StateBatch], int]]) -> None:
    batches: list[StateBatch] = []
    known: Offsets = {}
    start = 0
    for new, cut in steps:
        merge(batches, new)
        known = merged(known, by_offset(new))
        start = max(start, cut)
        cut_below(batches, start)
        known = {offset: said for offset, said in known.items() if offset >= start}
        assert by_offset(batches) == known
        assert_tidy(batches)


@given(ascending(), ascending())
def test_a_write_that_arrives_twice_changes_nothing(known: list[StateBatch], new: list[StateBatch]) -> None:
    once: list[StateBatch] = []
    merge(once, known)
    merge(once, new)
    twice = list(once)
    merge(twice, new)
    assert {offset: said[:2] for offset, said in by_offset(twice).items()} == {
        offset: said[:2] for offset, said in by_offset(once).items()
    }
