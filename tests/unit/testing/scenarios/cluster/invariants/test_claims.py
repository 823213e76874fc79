"""Claims of clients are checked as soon as the committed history covers them, and none may stay open at the end."""

from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tests.unit.testing.scenarios.cluster.invariants.observations import KEY, entry, history, observation, violates


def test_an_acknowledged_batch_that_is_not_the_committed_one() -> None:
    claims = Claims(history(entry(0, crc=5)))
    claims.acknowledged(KEY, 0, 5, "p0")
    with violates(Invariant.NOTHING_LOST):
        claims.acknowledged(KEY, 0, 6, "p1")


def test_a_batch_acknowledged_before_it_was_committed_and_then_lost() -> None:
    histories = CommittedHistories()
    claims = Claims(histories)
    claims.acknowledged(KEY, 0, 5, "p0")
    claims.settle(KEY)
    histories.of(KEY).add(observation(high_watermark=1), [entry(0, crc=6)])
    with violates(Invariant.NOTHING_LOST):
        claims.settle(KEY)


def test_a_batch_acknowledged_above_the_end_of_the_log() -> None:
    claims = Claims(history(entry(0)))
    claims.acknowledged(KEY, 1, 5, "p0")
    assert claims.open(KEY) == 1
    with violates(Invariant.NOTHING_LOST):
        claims.check_all_settled(KEY)


def test_a_batch_that_was_read_and_never_committed() -> None:
    claims = Claims(history(entry(0, 2, crc=5)))
    claims.read(KEY, 0, 5, "reader")
    with violates(Invariant.ONE_VALUE):
        claims.read(KEY, 1, 5, "reader")
