"""TxnOffsetCommit to a consumer group (KIP-848): the generation is the member's epoch."""

import pytest

from tailrace.groups.groups import Groups
from tailrace.groups.offsets import Committed
from tailrace.groups.requests import MemberId
from tailrace.groups.turn import GroupTurn
from tailrace.model.faults import Fault, IllegalGeneration, UnknownMember
from tailrace.model.ids import PartitionName
from tailrace.model.proposal import InTransaction, TransactionEnded
from tests.unit.groups.consumer.mixed_stage import MixedStage
from tests.unit.groups.stage import RULES
from tests.unit.state_tables import replay

place = PartitionName("t", 0)


@pytest.fixture
def groups() -> Groups:
    stage = MixedStage()
    replay("begin\ntopic t has 1 partition\na joins subscribing to t\n", stage)
    return stage.groups


def commit(groups: Groups, member_id: str, epoch: int) -> GroupTurn:
    turn = GroupTurn(now=0.0, wall_ms=0, rules=RULES, alarms=groups.alarms)
    groups.commit_in_transaction("g", MemberId(member_id), epoch, (1, 0), {place: Committed(offset=7)}, turn)
    return turn


def test_a_member_commits_with_its_epoch_and_the_offset_counts_once_the_transaction_is_committed(
    groups: Groups,
) -> None:
    (record,) = commit(groups, "a", 1).records
    assert isinstance(record, InTransaction)
    groups.replay(record)
    assert groups.committed("g") == {}
    groups.replay(TransactionEnded(1, True))
    assert groups.committed("g")[place].offset == 7


@pytest.mark.parametrize(
    ("member_id", "epoch", "fault"), [("a", 0, IllegalGeneration), ("a", 2, IllegalGeneration), ("b", 1, UnknownMember)]
)
def test_a_wrong_epoch_and_an_unknown_member_are_refused(
    groups: Groups, member_id: str, epoch: int, fault: type[Fault]
) -> None:
    with pytest.raises(fault):
        commit(groups, member_id, epoch)
