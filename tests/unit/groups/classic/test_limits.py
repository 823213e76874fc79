"""The limits of a classic group: its generation must fit into one record, and pending member ids are bounded."""

from dataclasses import replace

import pytest

from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.classic.member import ClassicMember
from tailrace.groups.classic.states import State
from tailrace.groups.groups import Groups
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import GroupFull, InconsistentProtocol, MemberIdRequired
from tailrace.model.limits import (
    GROUP_PENDING_MEMBERS_MAX,
    GROUP_PROTOCOLS_MAX,
    GROUP_REBALANCE_MIN_MS,
    GROUP_SUBSCRIPTIONS_MAX_BYTES,
)
from tests.unit.groups.classic.stage import Stage
from tests.unit.groups.stage import join_request


def turn(groups: Groups) -> GroupTurn:
    return GroupTurn(now=0.0, wall_ms=0, rules=Stage().rules, alarms=groups.alarms)


def test_the_subscriptions_of_a_group_are_bounded() -> None:
    groups = Groups()
    quarter = bytes(GROUP_SUBSCRIPTIONS_MAX_BYTES // 4 - len("range"))
    for number in range(4):
        groups.join("g", join_request({"range": quarter}), number, f"m{number}", turn(groups))
    with pytest.raises(GroupFull, match="bytes"):
        groups.join("g", join_request({"range": b"x"}), 4, "m4", turn(groups))
    groups.join("h", join_request({"range": b"x"}), 5, "m5", turn(groups))


def test_pending_member_ids_are_bounded() -> None:
    groups = Groups()
    for number in range(GROUP_PENDING_MEMBERS_MAX):
        answered = turn(groups)
        groups.join("g", join_request({"range": b"x"}, id_required=True), number, f"m{number}", answered)
        assert isinstance(answered.answers[0][1], MemberIdRequired)
    with pytest.raises(GroupFull):
        groups.join("g", join_request({"range": b"x"}, id_required=True), 0, "one too many", turn(groups))
    rejoining = replace(join_request({"range": b"x"}), identity=MemberId("m7"))
    groups.join("g", rejoining, 7, "", turn(groups))  # a client with a pending id may still join
    assert list(groups.groups["g"].members) == ["m7"]
    groups.leave("g", [MemberId("m7")], turn(groups))
    while groups.alarms.first is not None:  # a turn handles a bounded number of alarms
        groups.ring(GroupTurn(now=11.0, wall_ms=0, rules=Stage().rules, alarms=groups.alarms))
    assert not groups.find_kind("g", ClassicGroup).pending
    assert len(groups.alarms) == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_a_rebalance_timeout_of_zero_or_less_does_not_make_the_coordinator_spin(timeout_ms: int) -> None:
    groups = Groups()
    for name in ("here", "gone"):
        static = replace(join_request({"range": b"x"}), identity=MemberId("", name), rebalance_timeout_ms=timeout_ms)
        groups.join("g", static, name, name, turn(groups))
    groups.leave("g", [MemberId("", "gone")], turn(groups))
    groups.ring(turn(groups))  # cancelled alarms are skipped
    for number in range(1, 4):  # the group waits for the absent static member, again and again
        due = groups.alarms.first
        assert due is not None
        assert due >= number * GROUP_REBALANCE_MIN_MS / 1000
        groups.ring(GroupTurn(now=due, wall_ms=0, rules=Stage().rules, alarms=groups.alarms))
        assert groups.find_kind("g", ClassicGroup).state is State.PREPARING


def test_the_protocols_of_a_member_are_bounded_in_number_and_their_names_count_as_bytes() -> None:
    groups = Groups()
    most = {f"p{number}": b"" for number in range(GROUP_PROTOCOLS_MAX)}
    with pytest.raises(InconsistentProtocol, match="101 protocols; 100 are allowed"):
        groups.join("g", join_request(most | {"more": b""}), 0, "m", turn(groups))
    groups.join("g", join_request(most), 0, "m", turn(groups))
    named = {"é" * (GROUP_SUBSCRIPTIONS_MAX_BYTES // 2 - 100) + "x": b"", "p0": b""}
    with pytest.raises(GroupFull, match="bytes"):
        groups.join("g", join_request(named), 1, "n", turn(groups))


class CountingProtocols(dict[str, bytes]):
    """A member's protocols, which count the lookups."""

    lookups = 0

    def __contains__(self, name: object) -> bool:
        self.lookups += 1
        return super().__contains__(name)


def test_the_protocols_of_all_members_are_compared_once_for_a_new_member() -> None:
    group = ClassicGroup("g")
    known = CountingProtocols({f"p{number}": b"" for number in range(GROUP_PROTOCOLS_MAX)})
    group.add(ClassicMember.of("m", join_request({"range": b""})))
    group.members["m"].protocols = known
    group.protocol_type = "consumer"
    assert not group.supports("consumer", [f"q{number}" for number in range(GROUP_PROTOCOLS_MAX)])
    assert group.supports("consumer", ["q", "p7"])
    assert known.lookups <= 2 * len(known)
