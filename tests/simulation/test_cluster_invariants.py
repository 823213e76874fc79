"""Each invariant of the simulated cluster can fail: a history made by hand that breaks it, beside one that does not."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from crc32c import crc32c

from tailrace.broker.replication.vote_journal import ENTRY_LAYOUT
from tailrace.model.ids import BrokerId, Id, TopicPartition
from tailrace.raft.voters import NO_VOTER, Voter
from tailrace.testing.scenarios.cluster.invariants.claims import Claims
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories, CommittedHistory
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant, InvariantViolated
from tailrace.testing.scenarios.cluster.invariants.leadership import Leaders, ReplicaProgress, check_undamaged
from tailrace.testing.scenarios.cluster.invariants.log_entries import Entry
from tailrace.testing.scenarios.cluster.invariants.observation import ReplicaObservation
from tailrace.testing.scenarios.cluster.invariants.vote_journals import VoteJournals

key = TopicPartition(Id(b"t" * 16), 0)
recreated = TopicPartition(Id(b"u" * 16), 0)
voters = tuple(Voter(BrokerId(number), Id(bytes([number]) * 16)) for number in (1, 2, 3))


def seen(
    broker: int = 1,
    *,
    life: int = 1,
    key: TopicPartition = key,
    epoch: int = 1,
    stored: bool = True,
    leads: bool = False,
    mark: int = 0,
    committed: int = 1,
    start: int = 0,
    end: int = 10,
    damaged: bool = False,
    alone: bool = False,
) -> ReplicaObservation:
    me = voters[broker - 1]
    known = (me,) if alone else voters
    return ReplicaObservation(
        f"b{broker}", life, key, me, known, epoch, stored, leads, mark, committed, start, end, damaged
    )


def entry(base: int, count: int = 1, *, epoch: int = 1, crc: int = 7, producer: int = -1, sequence: int = -1) -> Entry:
    return Entry(base, base + count - 1, epoch, crc, crc * 31 + epoch, producer, 0, sequence)


def vote(epoch: int, voter: Voter, key: TopicPartition = key) -> bytes:
    row = ENTRY_LAYOUT.pack(key.topic_id, key.partition, epoch, voter.broker, voter.directory)
    return row + crc32c(row).to_bytes(4, "big")


@contextmanager
def breaks(invariant: Invariant) -> Iterator[None]:
    with pytest.raises(InvariantViolated) as caught:
        yield
    assert caught.value.invariant is invariant
    assert str(caught.value).startswith(invariant.value)


def history(*entries: Entry) -> CommittedHistories:
    histories = CommittedHistories()
    histories.of(key).take(seen(mark=10), entries)
    return histories


class TestLeaders:
    def test_two_in_one_epoch_at_different_times(self) -> None:
        leaders = Leaders()
        assert leaders.seen(seen(1, leads=True, epoch=4))
        assert not leaders.seen(seen(1, leads=True, epoch=4))
        assert leaders.seen(seen(2, leads=True, epoch=5))
        assert leaders.changes == 1
        with breaks(Invariant.ONE_LEADER):
            leaders.seen(seen(3, leads=True, epoch=4))

    def test_metadata_that_names_another(self) -> None:
        leaders = Leaders()
        leaders.seen(seen(1, leads=True, epoch=4))
        leaders.told(key, 4, BrokerId(1), "Metadata")
        with breaks(Invariant.ONE_LEADER):
            leaders.told(key, 4, BrokerId(2), "Metadata")

    def test_that_knows_of_damage(self) -> None:
        check_undamaged(seen(damaged=True))
        check_undamaged(seen(damaged=True, leads=True, alone=True))
        with breaks(Invariant.DAMAGED):
            check_undamaged(seen(damaged=True, leads=True))

    def test_that_lacks_what_is_committed(self) -> None:
        committed = history(entry(0, 6)).of(key)
        committed.check_leader(seen(2, end=6))
        with breaks(Invariant.PREFIX):
            committed.check_leader(seen(2, end=5))


class TestMarks:
    def test_high_watermark_falls(self) -> None:
        marks = ReplicaProgress()
        marks.seen(seen(mark=5))
        marks.seen(seen(mark=3, life=2))  # the checkpointed one may lag
        with breaks(Invariant.RISING):
            marks.seen(seen(mark=2, life=2))

    def test_epoch_falls(self) -> None:
        marks = ReplicaProgress()
        marks.seen(seen(epoch=5))
        with breaks(Invariant.RISING):
            marks.seen(seen(epoch=4))

    def test_a_leader_counts_for_an_epoch_before_its_own(self) -> None:
        marks = ReplicaProgress()
        marks.seen(seen(leads=True, epoch=2, mark=5))  # as it was when it was elected
        with breaks(Invariant.OWN_EPOCH):
            marks.seen(seen(leads=True, epoch=2, mark=6, committed=1))
        marks.seen(seen(leads=True, epoch=2, mark=8, committed=2))

    def test_log_is_cut_below_the_high_watermark(self) -> None:
        with breaks(Invariant.PREFIX):
            ReplicaProgress().seen(seen(mark=8, end=7))


class TestCommitted:
    def test_replicas_that_agree(self) -> None:
        committed = CommittedHistory(key)
        committed.take(seen(1), [entry(0, 3), entry(3, 2, epoch=2)])
        committed.take(seen(2), [entry(0, 3), entry(3, 2, epoch=2), entry(5, epoch=2)])
        committed.take(seen(3, start=5), [entry(5, epoch=2)])
        assert (committed.end, len(committed)) == (6, 3)

    @pytest.mark.parametrize("other", [entry(3, crc=8), entry(3, epoch=3), entry(2, 2), entry(4)])
    def test_other_bytes_at_an_offset(self, other: Entry) -> None:
        committed = history(entry(0, 3), entry(3, 2)).of(key)
        with breaks(Invariant.SAME_BYTES):
            committed.take(seen(2), [other])

    def test_an_older_epoch_after_a_newer_one(self) -> None:
        with breaks(Invariant.RISING):
            history(entry(0, epoch=2), entry(1, epoch=1))

    def test_a_hole(self) -> None:
        with breaks(Invariant.PREFIX):
            history(entry(0), entry(2))

    @pytest.mark.parametrize("sequence", [0, 1, 4])
    def test_a_producers_batch_comes_twice_or_out_of_order(self, sequence: int) -> None:
        with breaks(Invariant.NO_DUPLICATES):
            history(entry(0, 2, producer=9, sequence=0), entry(2, producer=9, sequence=sequence))


class TestClaims:
    def test_acknowledged_and_not_there(self) -> None:
        claims = Claims(history(entry(0, crc=5)))
        claims.acknowledged(key, 0, 5, "p0")
        with breaks(Invariant.NOTHING_LOST):
            claims.acknowledged(key, 0, 6, "p1")

    def test_acknowledged_before_it_is_committed_and_then_lost(self) -> None:
        histories = CommittedHistories()
        claims = Claims(histories)
        claims.acknowledged(key, 0, 5, "p0")
        claims.settle(key)
        histories.of(key).take(seen(mark=1), [entry(0, crc=6)])
        with breaks(Invariant.NOTHING_LOST):
            claims.settle(key)

    def test_acknowledged_above_the_end_there_is(self) -> None:
        claims = Claims(history(entry(0)))
        claims.acknowledged(key, 1, 5, "p0")
        assert claims.open(key) == 1
        with breaks(Invariant.NOTHING_LOST):
            claims.check_all_settled(key)

    def test_read_what_was_never_committed(self) -> None:
        claims = Claims(history(entry(0, 2, crc=5)))
        claims.read(key, 0, 5, "reader")
        with breaks(Invariant.ONE_VALUE):
            claims.read(key, 1, 5, "reader")


class TestJournals:
    def test_an_epoch_that_nobody_stood_for(self) -> None:
        journals = VoteJournals()
        journals.read_on("b1", voters[0].directory, vote(1, voters[0]))
        journals.check(seen(2, epoch=1))
        journals.check(seen(2, epoch=2, stored=False))
        with breaks(Invariant.LATE_VOTE):
            journals.check(seen(2, epoch=1, key=recreated), recreated=True)

    def test_an_epoch_that_only_others_voted_in(self) -> None:
        journals = VoteJournals()
        journals.read_on("b1", voters[0].directory, vote(1, voters[1]))
        with breaks(Invariant.STORED):
            journals.check(seen(1, epoch=1))

    def test_two_votes_in_one_epoch(self) -> None:
        journals, first = VoteJournals(), vote(1, NO_VOTER) + vote(1, voters[1])
        journals.read_on("b1", voters[0].directory, first)
        with breaks(Invariant.ONE_VOTE):
            journals.read_on("b1", voters[0].directory, first + vote(1, voters[2]))

    def test_a_vote_that_the_power_took_is_forgotten(self) -> None:
        journals = VoteJournals()
        journals.read_on("b1", voters[0].directory, vote(1, voters[1]))
        journals.power_cut("b1")
        journals.read_on("b1", voters[0].directory, vote(1, voters[0]))
        journals.check(seen(1, epoch=1))

    def test_a_vote_written_over_what_a_full_disk_left(self) -> None:
        journals = VoteJournals()
        journals.read_on("b1", voters[0].directory, vote(1, voters[1]))
        journals.read_on("b1", voters[0].directory, vote(2, voters[0]))
        journals.check(seen(1, epoch=2))
