"""What one group may cost: its generation must fit a record, and ids that were given out are counted."""

from dataclasses import replace

import pytest

from tailrace.groups.group import ClassicGroup
from tailrace.groups.groups import Groups
from tailrace.groups.member import ClassicMember
from tailrace.groups.requests import Joining, MemberId
from tailrace.groups.states import State
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import GroupFull, InconsistentProtocol, MemberIdRequired
from tailrace.model.limits import (
    GROUP_PENDING_MEMBERS_MAX,
    GROUP_PROTOCOLS_MAX,
    GROUP_REBALANCE_MIN_MS,
    GROUP_SUBSCRIPTIONS_MAX_BYTES,
)
from tests.unit.groups.stage import Stage


def wanted(metadata: bytes, *, id_required: bool = False) -> Joining:
    return Joining(
        who=MemberId(""),
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols={"range": metadata},
        id_required=id_required,
    )


def turn(groups: Groups) -> GroupTurn:
    return GroupTurn(now=0.0, wall_ms=0, rules=Stage().rules, alarms=groups.alarms)


def test_what_members_say_of_themselves_is_bounded_for_the_group() -> None:
    groups = Groups()
    quarter = bytes(GROUP_SUBSCRIPTIONS_MAX_BYTES // 4 - len("range"))
    for number in range(4):
        groups.join("g", wanted(quarter), number, f"m{number}", turn(groups))
    with pytest.raises(GroupFull, match="bytes"):
        groups.join("g", wanted(b"x"), 4, "m4", turn(groups))
    groups.join("h", wanted(b"x"), 5, "m5", turn(groups))


def test_ids_that_nobody_comes_back_with_are_bounded() -> None:
    groups = Groups()
    for number in range(GROUP_PENDING_MEMBERS_MAX):
        told = turn(groups)
        groups.join("g", wanted(b"x", id_required=True), number, f"m{number}", told)
        assert isinstance(told.answers[0][1], MemberIdRequired)
    with pytest.raises(GroupFull):
        groups.join("g", wanted(b"x", id_required=True), 0, "one too many", turn(groups))
    back = replace(wanted(b"x"), who=MemberId("m7"))
    groups.join("g", back, 7, "", turn(groups))  # who was given one may come back
    assert list(groups.groups["g"].members) == ["m7"]
    groups.leave("g", [MemberId("m7")], turn(groups))
    while groups.alarms.first is not None:  # as many at a time as a turn may take
        groups.ring(GroupTurn(now=11.0, wall_ms=0, rules=Stage().rules, alarms=groups.alarms))
    assert not groups.find_kind("g", ClassicGroup).pending
    assert len(groups.alarms) == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_who_gives_static_members_no_time_lets_the_coordinator_rest_all_the_same(timeout_ms: int) -> None:
    groups = Groups()
    for name in ("here", "gone"):
        static = replace(wanted(b"x"), who=MemberId("", name), rebalance_timeout_ms=timeout_ms)
        groups.join("g", static, name, name, turn(groups))
    groups.leave("g", [MemberId("", "gone")], turn(groups))
    groups.ring(turn(groups))  # what was cancelled is passed over
    for number in range(1, 4):  # one that is away is waited for again and again
        due = groups.alarms.first
        assert due is not None
        assert due >= number * GROUP_REBALANCE_MIN_MS / 1000
        groups.ring(GroupTurn(now=due, wall_ms=0, rules=Stage().rules, alarms=groups.alarms))
        assert groups.find_kind("g", ClassicGroup).state is State.PREPARING


def test_a_member_has_so_many_protocols_and_their_names_count() -> None:
    groups = Groups()
    most = {f"p{number}": b"" for number in range(GROUP_PROTOCOLS_MAX)}
    with pytest.raises(InconsistentProtocol, match=r"101 protocols, of 100 .* assignors"):
        groups.join("g", replace(wanted(b""), protocols=most | {"more": b""}), 0, "m", turn(groups))
    groups.join("g", replace(wanted(b""), protocols=most), 0, "m", turn(groups))
    named = {"é" * (GROUP_SUBSCRIPTIONS_MAX_BYTES // 2 - 100) + "x": b"", "p0": b""}
    with pytest.raises(GroupFull, match="bytes"):
        groups.join("g", replace(wanted(b""), protocols=named), 1, "n", turn(groups))


class Asked(dict[str, bytes]):
    """Protocols of a member, and how often they were asked for one."""

    times = 0

    def __contains__(self, name: object) -> bool:
        self.times += 1
        return super().__contains__(name)


def test_a_new_member_is_compared_with_what_all_know_in_one_go() -> None:
    group = ClassicGroup("g")
    known = Asked({f"p{number}": b"" for number in range(GROUP_PROTOCOLS_MAX)})
    group.add(ClassicMember.of("m", wanted(b"")))
    group.members["m"].protocols = known
    group.protocol_type = "consumer"
    assert not group.may_join("consumer", [f"q{number}" for number in range(GROUP_PROTOCOLS_MAX)])
    assert group.may_join("consumer", ["q", "p7"])
    assert known.times <= 2 * len(known)
