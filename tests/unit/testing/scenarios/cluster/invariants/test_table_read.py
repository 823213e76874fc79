"""A consumer of a compacted topic must find each last value; of a deleted key it may find an old one only if the
replica that it read from may have removed the tombstone meanwhile, or was another one."""

import pytest

from tailrace.testing.scenarios.cluster.invariants.compacted_history import Committed, CompactedHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tailrace.testing.scenarios.cluster.invariants.table_read import Answer, Moment, TableRead
from tests.unit.testing.scenarios.cluster.invariants.observations import KEY, violates

KEPT_MS = 100
ONE, OTHER = (("b1", KEY), 0), (("b2", KEY), 0)
ONE_ANEW = ("b1", KEY), 1


def committed(*records: tuple[bytes, bytes | None]) -> CompactedHistory:
    history = CompactedHistory()
    for offset, (key, value) in enumerate(records):
        history.records[offset] = Committed(key, value, 0, 0, -1, -1, is_transactional=False)
    return history


def missed_tombstone(asked: Moment, answered: Moment) -> TableRead:
    """The value at offset 0 was read, and at offset 1, in a second answer, no tombstone was left."""
    read = TableRead("reader")
    read.table[b"k"] = 0, b"old"
    read.answers = [
        Answer(range(1), asked, Moment(asked.log, asked.at + 0.01)),
        Answer(range(1, 3), Moment(answered.log, answered.at - 0.01), answered),
    ]
    return read


DELETED = committed((b"k", b"old"), (b"k", None))


def test_a_tombstone_was_missed_on_the_log_that_had_the_value_in_less_time_than_it_keeps_tombstones() -> None:
    with violates(Invariant.LAST_VALUE):
        missed_tombstone(Moment(ONE, 1.0), Moment(ONE, 1.09)).check(DELETED, KEPT_MS)


@pytest.mark.parametrize(
    "answered",
    [
        pytest.param(Moment(ONE, 1.11), id="the consumer took longer than tombstones are kept"),
        pytest.param(Moment(OTHER, 1.09), id="another replica had removed the value and the tombstone"),
        pytest.param(Moment(ONE_ANEW, 1.09), id="the replica had begun anew, from a leader without the tombstone"),
    ],
)
def test_a_tombstone_may_be_missed(answered: Moment) -> None:
    missed_tombstone(Moment(ONE, 1.0), answered).check(DELETED, KEPT_MS)


def test_a_consumer_that_may_miss_tombstones_finds_only_what_was_committed() -> None:
    read = missed_tombstone(Moment(ONE, 1.0), Moment(OTHER, 2.0))
    with violates(Invariant.LAST_VALUE):
        read.check(committed((b"other", b"old"), (b"k", None), (b"other", None)), KEPT_MS)


def test_a_consumer_that_may_miss_tombstones_finds_every_last_value() -> None:
    read = missed_tombstone(Moment(ONE, 1.0), Moment(OTHER, 2.0))
    with violates(Invariant.LAST_VALUE):
        read.check(committed((b"k", b"old"), (b"k", b"new")), KEPT_MS)


def test_a_consumer_that_never_came_to_the_tombstone() -> None:
    read = missed_tombstone(Moment(ONE, 1.0), Moment(OTHER, 2.0))
    read.answers.pop()
    with violates(Invariant.LAST_VALUE):
        read.check(DELETED, KEPT_MS)


def test_a_consumer_that_saw_the_tombstone() -> None:
    read = TableRead("reader")
    read.table[b"k"] = 1, None
    read.check(DELETED, KEPT_MS)


def test_a_consumer_of_a_log_without_the_value_and_the_tombstone() -> None:
    TableRead("reader").check(DELETED, KEPT_MS)
