"""The list of faults is closed, and faults can be pickled, for worker processes."""

import pickle
from typing import get_args

import pytest

from tailrace.model import faults
from tailrace.model.faults import AnyFault, Fault, InvalidBatch, NotController, NotLeader, RejectedRecord
from tailrace.model.ids import BrokerId, Epoch
from tailrace.wire.errors import Error
from tailrace.wire.faults import error_of


def test_every_fault_is_in_the_closed_list() -> None:
    assert set(get_args(AnyFault)) == set(Fault.__subclasses__())


def test_the_text_of_a_fault_is_its_message() -> None:
    for kind in get_args(AnyFault):
        assert str(kind("what happened")) == "what happened"


def test_faults_can_be_pickled() -> None:
    sent = NotLeader("ask broker 5", leader=BrokerId(5), epoch=Epoch(9))
    received = pickle.loads(pickle.dumps(sent))
    assert isinstance(received, NotLeader)
    assert (str(received), received.leader, received.epoch) == ("ask broker 5", 5, 9)
    refused = pickle.loads(pickle.dumps(faults.RefusedElsewhere("no", code=42)))
    assert (str(refused), refused.code) == ("no", 42)
    asked = pickle.loads(pickle.dumps(NotController("ask broker 2", controller=BrokerId(2))))
    assert isinstance(asked, NotController)
    assert (str(asked), asked.controller) == ("ask broker 2", 2)
    rejected = (RejectedRecord(3, "no key"),)
    assert pickle.loads(pickle.dumps(InvalidBatch("no", rejected))).records == rejected


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.DuplicateBroker, Error.DUPLICATE_BROKER_REGISTRATION),
        (faults.InconsistentCluster, Error.INCONSISTENT_CLUSTER_ID),
        (faults.NotController, Error.NOT_CONTROLLER),
        (faults.NotEnoughReplicasAfterAppend, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (faults.OffsetNotAvailable, Error.OFFSET_NOT_AVAILABLE),
        (faults.PreferredLeaderNotAvailable, Error.PREFERRED_LEADER_NOT_AVAILABLE),
        (faults.EligibleLeadersNotAvailable, Error.ELIGIBLE_LEADERS_NOT_AVAILABLE),
        (faults.ElectionNotNeeded, Error.ELECTION_NOT_NEEDED),
        (faults.BrokerNotAvailable, Error.BROKER_NOT_AVAILABLE),
    ],
)
def test_faults_between_brokers_have_kafkas_errors(fault: type[Fault], error: Error) -> None:
    assert error_of(fault("what happened")) is error


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.InvalidRecordState, Error.INVALID_RECORD_STATE),
        (faults.ShareSessionNotFound, Error.SHARE_SESSION_NOT_FOUND),
        (faults.InvalidShareSessionEpoch, Error.INVALID_SHARE_SESSION_EPOCH),
        (faults.ShareSessionLimitReached, Error.SHARE_SESSION_LIMIT_REACHED),
        (faults.FencedStateEpoch, Error.FENCED_STATE_EPOCH),
    ],
)
def test_faults_of_share_groups_have_kafkas_errors(fault: type[Fault], error: Error) -> None:
    assert error_of(fault("what happened")) is error
    assert fault.retry == error.retriable
