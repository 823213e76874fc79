"""Every epoch has a candidate's vote for itself on disk, and a journal holds one vote per epoch."""

from tailrace.raft.voters import NO_VOTER
from tailrace.testing.scenarios.cluster.invariants.invariants import Invariant
from tailrace.testing.scenarios.cluster.invariants.vote_journals import VoteJournals
from tests.unit.testing.scenarios.cluster.invariants.observations import (
    RECREATED,
    VOTERS,
    observation,
    violates,
    vote,
)


def test_an_epoch_of_a_deleted_topic_in_the_recreated_one() -> None:
    journals = VoteJournals()
    journals.read_on("b1", VOTERS[0].directory, vote(1, VOTERS[0]))
    journals.check(observation(2, epoch=1))
    journals.check(observation(2, epoch=2, stored=False))
    with violates(Invariant.LATE_VOTE):
        journals.check(observation(2, epoch=1, key=RECREATED), recreated=True)


def test_an_epoch_in_which_no_candidate_voted_for_itself() -> None:
    journals = VoteJournals()
    journals.read_on("b1", VOTERS[0].directory, vote(1, VOTERS[1]))
    with violates(Invariant.STORED):
        journals.check(observation(1, epoch=1))


def test_two_votes_in_one_epoch() -> None:
    journals, first = VoteJournals(), vote(1, NO_VOTER) + vote(1, VOTERS[1])
    journals.read_on("b1", VOTERS[0].directory, first)
    with violates(Invariant.ONE_VOTE):
        journals.read_on("b1", VOTERS[0].directory, first + vote(1, VOTERS[2]))


def test_a_vote_that_a_power_cut_lost_may_be_given_again() -> None:
    journals = VoteJournals()
    journals.read_on("b1", VOTERS[0].directory, vote(1, VOTERS[1]))
    journals.power_cut("b1")
    journals.read_on("b1", VOTERS[0].directory, vote(1, VOTERS[0]))
    journals.check(observation(1, epoch=1))


def test_a_vote_written_over_what_a_full_disk_left() -> None:
    journals = VoteJournals()
    journals.read_on("b1", VOTERS[0].directory, vote(1, VOTERS[1]))
    journals.read_on("b1", VOTERS[0].directory, vote(2, VOTERS[0]))
    journals.check(observation(1, epoch=2))
