"""The committed history accepts replicas that agree, and refuses every kind of difference."""

import pytest

from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tailrace.testing.scenarios.cluster.invariants.log_entries import Entry
from tests.unit.testing.scenarios.cluster.invariants.observations import KEY, entry, history, observation, violates


def test_replicas_that_agree() -> None:
    committed = CommittedHistory(KEY)
    committed.add(observation(1), [entry(0, 3), entry(3, 2, epoch=2)])
    committed.add(observation(2), [entry(0, 3), entry(3, 2, epoch=2), entry(5, epoch=2)])
    committed.add(observation(3, start=5), [entry(5, epoch=2)])
    assert (committed.end, len(committed)) == (6, 3)


@pytest.mark.parametrize("other", [entry(3, crc=8), entry(3, epoch=3), entry(2, 2), entry(4)])
def test_other_bytes_at_an_offset(other: Entry) -> None:
    committed = history(entry(0, 3), entry(3, 2)).of(KEY)
    with violates(Invariant.SAME_BYTES):
        committed.add(observation(2), [other])


def test_an_older_epoch_after_a_newer_one() -> None:
    with violates(Invariant.RISING):
        history(entry(0, epoch=2), entry(1, epoch=1))


def test_a_gap() -> None:
    with violates(Invariant.PREFIX):
        history(entry(0), entry(2))


@pytest.mark.parametrize("sequence", [0, 1, 4])
def test_an_idempotent_producers_batch_is_repeated_or_out_of_order(sequence: int) -> None:
    with violates(Invariant.NO_DUPLICATES):
        history(entry(0, 2, producer=9, sequence=0), entry(2, producer=9, sequence=sequence))


def test_a_new_leader_that_lacks_a_committed_entry() -> None:
    committed = history(entry(0, 6)).of(KEY)
    committed.check_leader(observation(2, end=6))
    with violates(Invariant.PREFIX):
        committed.check_leader(observation(2, end=5))
