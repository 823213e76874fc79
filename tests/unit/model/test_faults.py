"""The list of faults is closed, and a fault survives the way from a worker process."""

import pickle
from typing import get_args

from tailrace.model.faults import AnyFault, Fault, NotLeader
from tailrace.model.ids import BrokerId, Epoch


def test_every_fault_is_in_the_closed_list() -> None:
    assert list(get_args(AnyFault)) == Fault.__subclasses__()


def test_a_fault_is_its_sentence() -> None:
    for kind in get_args(AnyFault):
        assert str(kind("what happened")) == "what happened"


def test_faults_travel_between_processes() -> None:
    sent = NotLeader("ask broker 5", leader=BrokerId(5), epoch=Epoch(9))
    received = pickle.loads(pickle.dumps(sent))
    assert isinstance(received, NotLeader)
    assert (str(received), received.leader, received.epoch) == ("ask broker 5", 5, 9)
