"""The history of a group: two owners in one generation are a violation, unless the group started again."""

import pytest

from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


def test_two_owners_in_one_generation_are_a_violation() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    with pytest.raises(InvariantViolated, match=Invariant.ONE_OWNER):
        history.assigned(1, 0, "b")


def test_a_group_that_all_members_have_left_may_start_again_with_the_same_generation() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.left("a")
    history.assigned(1, 0, "b")
    with pytest.raises(InvariantViolated, match=Invariant.ONE_OWNER):
        history.assigned(1, 0, "c")


def test_a_group_does_not_start_again_while_it_has_a_member() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.assigned(1, 1, "b")
    history.left("a")
    with pytest.raises(InvariantViolated, match=Invariant.ONE_OWNER):
        history.assigned(1, 0, "c")


def test_a_group_with_offsets_does_not_start_again() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.acknowledged(1, 1, 0, 5, "a")
    history.left("a")
    with pytest.raises(InvariantViolated, match=Invariant.ONE_OWNER):
        history.assigned(1, 0, "b")
