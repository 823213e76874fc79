"""What is said once more is all that counts: a machine that reads only that is the one that read everything."""

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.group import ClassicGroup
from tailrace.groups.groups import Groups
from tailrace.groups.kinds import AnyGroup
from tailrace.groups.offsets import Committed, entry
from tailrace.groups.records import Entry
from tailrace.groups.restating import restate, restate_offsets, size
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.mixed_stage import MixedStage
from tests.unit.groups.stage import Stage
from tests.unit.state_tables import replay, transcripts_of


def turn(stage: Stage | MixedStage) -> GroupTurn:
    return GroupTurn(now=0.0, wall_ms=5, rules=stage.rules, alarms=stage.groups.alarms)


def said_once_more(stage: Stage | MixedStage) -> Groups:
    told = turn(stage)
    assert not restate(stage.groups, list(stage.groups.groups), told)
    places = [(group, place) for group, places in stage.groups.offsets.items() for place in places]
    assert not restate_offsets(stage.groups, places, told)
    assert len(told.records) <= size(stage.groups)
    found = Groups()
    for one in told.records:
        assert isinstance(one, Entry)
        found.replay(one)
    found.serve(turn(stage))
    return found


def read_from_the_start(stage: Stage | MixedStage) -> Groups:
    found = Groups()
    for one in stage.log:
        found.replay(one)
    found.take_over_from(stage.groups)
    found.serve(turn(stage))
    return found


def shown(group: AnyGroup) -> dict[str, Any]:
    if isinstance(group, ConsumerGroup):
        return {name: value for name, value in vars(group).items() if name not in ("looked_at", "called")}
    return {**vars(group), "members": {one.id: repr(one) for one in group.members.values()}}


def everything(machine: Groups) -> tuple[Any, ...]:
    """What counts: offsets of topics that are gone do not."""
    offsets = {
        group: {
            place: (one.offset, one.leader_epoch, one.metadata, one.committed_ms)
            for place, one in kept.items()
            if not machine.is_gone(place, one)
        }
        for group, kept in machine.offsets.items()
        if kept
    }
    return {name: shown(group) for name, group in machine.groups.items()}, offsets


@pytest.mark.parametrize(("room", "build"), [("groups", Stage), ("consumer_groups", MixedStage)])
def test_after_each_line_of_every_transcript(room: str, build: Callable[[], Stage | MixedStage]) -> None:
    looked = 0
    for path in transcripts_of(room):
        stage = build()
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "    ")):
                stage.play(line)
                if is_settled(stage.groups):
                    assert everything(said_once_more(stage)) == everything(read_from_the_start(stage)), (path, line)
                    looked += 1
    assert looked > 50


def is_settled(machine: Groups) -> bool:
    classic = [group for group in machine.groups.values() if isinstance(group, ClassicGroup)]
    return machine.pending.is_empty and all(group.state.value in ("Empty", "Stable") for group in classic)


def test_a_classic_group_that_is_being_shared_out_is_left_for_another_time() -> None:
    stage = Stage()
    replay("begin\na joins\n", stage)
    told = turn(stage)
    assert restate(stage.groups, ["g"], told) == ["g"]
    assert told.records == []


def test_an_offset_that_a_transaction_is_about_to_replace_is_left_alone_and_others_are_not() -> None:
    """Said after the transaction's own it would count, whatever becomes of that."""
    machine, stage = Groups(), Stage()
    for number in (0, 1):
        machine.replay(entry("g", PartitionName("t", number), Committed(offset=5)))
    machine.replay(InTransaction(7, 0, entry("g", PartitionName("t", 0), Committed(offset=9))))
    told = turn(stage)
    both = [("g", PartitionName("t", 0)), ("g", PartitionName("t", 1))]
    assert restate_offsets(machine, both, told) == both[:1]
    assert told.records == [entry("g", PartitionName("t", 1), Committed(offset=5))]
    machine.replay(TransactionEnded(7, committed=True))
    assert restate_offsets(machine, both[:1], told) == []
    assert told.records[-1] == entry("g", PartitionName("t", 0), Committed(offset=9))
