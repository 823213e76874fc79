"""The history of a group: two owners in one generation are a violation, unless the group started again."""

import pytest

from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated


def check_it_may_not_own(history: GroupHistory, member: str) -> None:
    """A partition that another member owns in the same generation."""
    with pytest.raises(InvariantViolated, match=Invariant.ONE_OWNER):
        history.assigned(1, 0, member)


def test_two_owners_in_one_generation_are_a_violation() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    check_it_may_not_own(history, "b")


def test_a_group_that_all_members_have_left_may_start_again_with_the_same_generation() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.left("a")
    history.assigned(1, 0, "b")
    check_it_may_not_own(history, "c")


def test_a_group_does_not_start_again_while_it_has_a_member() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.assigned(1, 1, "b")
    history.left("a")
    check_it_may_not_own(history, "c")


def test_a_group_with_offsets_does_not_start_again() -> None:
    history = GroupHistory()
    history.assigned(1, 0, "a")
    history.acknowledged(1, 1, 0, 5, "a")
    history.left("a")
    check_it_may_not_own(history, "b")
