"""Regular expressions in subscriptions: their limits, and which topic names are matched when."""

import pytest

from tailrace.groups.consumer.expressions import compiled, matching
from tailrace.model.faults import InvalidExpression
from tailrace.model.limits import GROUP_EXPRESSION_MAX_CHARS, GROUP_EXPRESSIONS_MAX
from tests.unit.groups.consumer.coordinator import Coordinator


def test_the_number_of_expressions_of_a_group_is_bounded() -> None:
    coordinator = Coordinator()
    for number in range(GROUP_EXPRESSIONS_MAX):
        coordinator.join(f"m{number}", f"t{number}")
    with pytest.raises(InvalidExpression, match="100 regular expressions already"):
        coordinator.join("one too many", "another")
    coordinator.join("one more", "t0")  # an expression that the group has


def test_the_size_of_an_expression_and_of_its_program_is_bounded() -> None:
    coordinator = Coordinator()
    with pytest.raises(InvalidExpression, match="1001 characters; 1000 are allowed"):
        coordinator.join("m", "t" * (GROUP_EXPRESSION_MAX_CHARS + 1))
    with pytest.raises(InvalidExpression):
        coordinator.join("m", "((a{1000}){1000}){1000}")  # short, and would take all memory
    with pytest.raises(InvalidExpression, match=r"steps; 4000 are allowed: use fewer repetitions"):
        coordinator.join("m", ".*a.{900}")  # would be slow for each name
    coordinator.join("m", r"\p{L}+[.-]\p{L}+[.-]\p{N}+")


def test_an_expression_that_makes_backtracking_slow_is_fast() -> None:
    assert matching("(a|aa|aaa)+b", ["a" * 200, "a" * 200 + "b"], {}) == ("a" * 200 + "b",)


def test_groups_of_an_expression_are_not_captured() -> None:
    assert compiled("(t|o|p|i|c|-|[0-9]+)*" * 40).groups == 0


def test_names_with_a_known_result_are_not_matched_again() -> None:
    assert matching("t.*", ["a", "t1", "t2"], {"t.*": {"a": True, "t1": False}}) == ("a", "t2")
    assert matching("(", ["a"], {"(": {"a": True}}) == ("a",)


def test_a_member_that_leaves_does_not_cause_matching_and_the_next_heartbeat_does() -> None:
    coordinator = Coordinator()
    coordinator.topics.make("t1", 1)
    coordinator.join("m", "t.*")
    coordinator.join("n", names=("t1",))
    coordinator.topics.make("t2", 1)
    new = {"t.*": ["t2"]}
    assert coordinator.groups.names_to_match("g", None, coordinator.topics, {}) == new
    coordinator.leave("n")
    group = coordinator.group
    assert (group.expressions, list(group.members)) == ({"t.*": ("t1",)}, ["m"])
    assert coordinator.groups.names_to_match("g", "u", coordinator.topics, {"t.*": {}}) == new | {"u": ["t1", "t2"]}
    coordinator.join("m", "t.*")
    assert group.expressions == {"t.*": ("t1", "t2")}
    assert coordinator.groups.names_to_match("g", "t.*", coordinator.topics, {}) == {}


def test_new_topics_are_found_among_many_and_deleted_ones_dropped() -> None:
    coordinator = Coordinator()
    for number in range(50):
        coordinator.topics.make(f"t{number}", 1)
    coordinator.join("m", "t.*")
    coordinator.join("m", "t.*")  # all names are matched by now, and only new ones will be
    for name in ("t50", "u"):
        coordinator.topics.make(name, 1)
    coordinator.topics.remove("t7")
    coordinator.join("m", "t.*")
    expected = tuple(sorted(f"t{number}" for number in range(51) if number != 7))
    assert coordinator.group.expressions["t.*"] == expected
