"""A transaction commits offsets of a consumer group (KIP-848): for a member in its epoch, called its generation."""

import pytest

from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault, IllegalGeneration, UnknownMember
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.consumer_stage import plain_rules
from tests.unit.groups.mixed_stage import MixedStage
from tests.unit.state_tables import replay

place = PartitionName("t", 0)


@pytest.fixture
def groups() -> Groups:
    stage = MixedStage()
    replay("begin\ntopic t has 1 partition\na joins reading t\n", stage)
    return stage.groups


def committed(groups: Groups, member_id: str, epoch: int) -> GroupTurn:
    turn = GroupTurn(now=0.0, wall_ms=0, rules=plain_rules, alarms=groups.alarms)
    wanted = {place: Committed(offset=7)}
    groups.commit_in_transaction("g", MemberId(member_id), epoch, (1, 0), wanted, turn)
    return turn


def test_a_member_commits_in_its_epoch_and_it_counts_when_the_transaction_does(groups: Groups) -> None:
    (record,) = committed(groups, "a", 1).records
    assert isinstance(record, InTransaction)
    groups.replay(record)
    assert groups.committed("g") == {}
    groups.replay(TransactionEnded(1, True))
    assert groups.committed("g")[place].offset == 7


@pytest.mark.parametrize(
    ("member_id", "epoch", "fault"), [("a", 0, IllegalGeneration), ("a", 2, IllegalGeneration), ("b", 1, UnknownMember)]
)
def test_whoever_is_not_there_or_elsewhere_commits_nothing(
    groups: Groups, member_id: str, epoch: int, fault: type[Fault]
) -> None:
    with pytest.raises(fault):
        committed(groups, member_id, epoch)
