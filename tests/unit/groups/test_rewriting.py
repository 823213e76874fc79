"""The rewritten records hold the whole live state: replaying them alone yields the same as replaying the whole log."""

from collections.abc import Callable
from typing import Any

import pytest

from tailrace.groups.any_group import AnyGroup
from tailrace.groups.classic.group import ClassicGroup
from tailrace.groups.consumer.group import ConsumerGroup
from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed, entry
from tailrace.groups.records import Entry
from tailrace.groups.rewriting import live_records_max, rewrite_groups, rewrite_offsets
from tailrace.groups.share.group import ShareGroup
from tailrace.groups.turn import GroupTurn
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.classic.stage import Stage
from tests.unit.groups.consumer.mixed_stage import MixedStage
from tests.unit.groups.share.stage import ShareStage
from tests.unit.state_tables import replay, transcripts_of

AnyStage = Stage | MixedStage | ShareStage


def turn(stage: AnyStage) -> GroupTurn:
    return GroupTurn(now=0.0, wall_ms=5, rules=stage.rules, alarms=stage.groups.alarms)


def replayed_from_rewritten(stage: AnyStage) -> Groups:
    rewritten = turn(stage)
    assert not rewrite_groups(stage.groups, list(stage.groups.groups), rewritten)
    places = [(group, place) for group, places in stage.groups.offsets.items() for place in places]
    assert not rewrite_offsets(stage.groups, places, rewritten)
    assert len(rewritten.records) <= live_records_max(stage.groups)
    found = Groups()
    for one in rewritten.records:
        assert isinstance(one, Entry)
        found.replay(one)
    found.serve(turn(stage))
    return found


def replayed_from_log(stage: AnyStage) -> Groups:
    found = Groups()
    for one in stage.log:
        found.replay(one)
    found.inherit_deleted_topics(stage.groups)
    found.serve(turn(stage))
    return found


def state_of(group: AnyGroup) -> dict[str, Any]:
    if isinstance(group, ConsumerGroup):
        return {name: value for name, value in vars(group).items() if name not in ("topics_revision", "must_rejoin")}
    if isinstance(group, ShareGroup):
        return vars(group)
    return {**vars(group), "members": {one.id: repr(one) for one in group.members.values()}}


def live_state(machine: Groups) -> tuple[Any, ...]:
    """Without the offsets of deleted topics."""
    offsets = {
        group: {
            place: (one.offset, one.leader_epoch, one.metadata, one.committed_ms)
            for place, one in committed.items()
            if not machine.is_of_deleted_topic(place, one)
        }
        for group, committed in machine.offsets.items()
        if committed
    }
    return {name: state_of(group) for name, group in machine.groups.items()}, offsets


@pytest.mark.parametrize(
    ("room", "build"), [("groups", Stage), ("consumer_groups", MixedStage), ("share_groups", ShareStage)]
)
def test_the_live_state_is_the_same_after_each_line_of_every_transcript(
    room: str, build: Callable[[], AnyStage]
) -> None:
    compared = 0
    for path in transcripts_of(room):
        stage = build()
        for line in path.read_text().splitlines():
            if line and not line.startswith(("#", "    ")):
                stage.play(line)
                if can_be_rewritten(stage.groups):
                    rewritten, log = replayed_from_rewritten(stage), replayed_from_log(stage)
                    assert live_state(rewritten) == live_state(log), (path, line)
                    compared += 1
    assert compared > 50


def can_be_rewritten(machine: Groups) -> bool:
    classic = [group for group in machine.groups.values() if isinstance(group, ClassicGroup)]
    return machine.pending.is_empty and all(group.state.value in ("Empty", "Stable") for group in classic)


def test_a_classic_group_in_a_rebalance_has_to_wait() -> None:
    stage = Stage()
    replay("begin\na joins\n", stage)
    rewritten = turn(stage)
    assert rewrite_groups(stage.groups, ["g"], rewritten) == ["g"]
    assert rewritten.records == []


def test_an_offset_that_an_open_transaction_may_replace_has_to_wait_and_others_do_not() -> None:
    """If it were written after the transaction's own record, it would win even if the transaction is committed."""
    machine, stage = Groups(), Stage()
    for number in (0, 1):
        machine.replay(entry("g", PartitionName("t", number), Committed(offset=5)))
    machine.replay(InTransaction(7, 0, entry("g", PartitionName("t", 0), Committed(offset=9))))
    rewritten = turn(stage)
    both = [("g", PartitionName("t", 0)), ("g", PartitionName("t", 1))]
    assert rewrite_offsets(machine, both, rewritten) == both[:1]
    assert rewritten.records == [entry("g", PartitionName("t", 1), Committed(offset=5))]
    machine.replay(TransactionEnded(7, committed=True))
    assert rewrite_offsets(machine, both[:1], rewritten) == []
    assert rewritten.records[-1] == entry("g", PartitionName("t", 0), Committed(offset=9))
