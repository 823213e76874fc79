"""ShareGroupHeartbeat: the fields of a request, and limits. Its protocol is in the transcripts."""

from typing import Any

import pytest

from tailrace.groups.groups import Groups
from tailrace.groups.share.requests import ShareHeartbeat
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import GroupFull, InvalidRequest
from tailrace.model.limits import GROUP_SUBSCRIBED_NAMES_MAX
from tests.unit.groups.stage import RULES


def beat(machine: Groups, *, group: str = "g", **fields: Any) -> GroupTurn:
    turn = GroupTurn(now=0.0, wall_ms=0, rules=RULES, alarms=machine.alarms, own_settings={"g": OWN})
    request = ShareHeartbeat(**{"member_id": "m", "epoch": 0, "names": ("t",), **fields})
    machine.share_heartbeat(group, request, turn)
    for entry in turn.records:
        machine.replay(entry)
    return turn


OWN = {"share.session.timeout.ms": "20000"}


@pytest.mark.parametrize(
    "fields",
    [
        {"group": ""},
        {"member_id": ""},
        {"member_id": "m" * 37},
        {"rack_id": ""},
        {"names": None},
        {"names": ()},
        {"epoch": -2},
    ],
    ids=str,
)
def test_requests_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        beat(Groups(), **fields)


def test_a_member_id_may_have_36_characters() -> None:
    machine = Groups()
    beat(machine, member_id="m" * 36)
    assert list(machine.find_share_group("g").members) == ["m" * 36]


def test_the_number_of_topics_that_members_name_is_bounded() -> None:
    machine = Groups()
    half = tuple(str(number) for number in range(GROUP_SUBSCRIBED_NAMES_MAX // 2))
    beat(machine, member_id="a", names=half)
    beat(machine, member_id="b", names=half)
    with pytest.raises(GroupFull, match="topics"):
        beat(machine, member_id="c")


def test_a_group_has_its_own_session_timeout() -> None:
    machine = Groups()
    beat(machine)
    beat(machine, group="h")
    assert machine.alarms.take(15.0) is not None  # of h, whose members have the broker's 10 s
    assert machine.alarms.take(15.0) is None
    assert machine.alarms.take(20.0) is not None
