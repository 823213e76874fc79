"""What the transcripts cannot show: shared pulses of fetch sessions, violated invariants, and queries of the shell."""

from dataclasses import dataclass, replace

import pytest

from tailrace.log.state.epochs import EpochCache
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.effects import Vote
from tailrace.raft.events import Campaign, Tick, VotersAppended, VoteStored
from tailrace.raft.leading import has_quorum
from tailrace.raft.messages import (
    BeginEpoch,
    EpochEnd,
    EpochSeen,
    FetchAnswer,
    Fetched,
    Synced,
    VoteAnswer,
    VoteRequest,
)
from tailrace.raft.replica import Replica, Role
from tailrace.raft.state import Inconsistent
from tailrace.raft.voters import NO_VOTER, Voter, VoterHistory
from tests.unit.raft.minimal_shell import voter

ONE, TWO, THREE, FOUR = voter(1), voter(2), voter(3), voter(4)
ALL_THREE = (ONE, TWO, THREE)


@dataclass
class Session:
    at: float


def log_of_epoch(epoch: int) -> EpochCache:
    cache = EpochCache()
    cache.begin(epoch, 0)
    return cache


def replica(me: Voter, high_watermark: int = 10) -> Replica:
    """In epoch 4, with a log of 10 entries of epoch 3."""
    made = Replica(
        me=me,
        epoch=Epoch(4),
        log_end=Offset(10),
        high_watermark=Offset(high_watermark),
        voters=ALL_THREE,
        epochs=log_of_epoch(3),
    )
    made.progress(10, 10)
    return made


def leader() -> Replica:
    """Replica 1, elected leader of epoch 5 at second 0."""
    made = replica(ONE)
    made.step(Campaign())
    made.step(VoteStored(Epoch(5)))
    made.step(VoteAnswer(sender=TWO, to=ONE, epoch=Epoch(5), granted=True))
    assert made.role is Role.LEADER
    return made


def follower(high_watermark: int = 10) -> Replica:
    """Replica 2, a follower of replica 1 in epoch 5 since second 0."""
    made = replica(TWO, high_watermark)
    made.step(BeginEpoch(sender=ONE, to=TWO, epoch=Epoch(5)))
    made.step(VoteStored(Epoch(5)))
    assert made.role is Role.FOLLOWER
    return made


def fetch(peer: Voter, end: int, pulse: Session | None = None) -> Fetched:
    return Fetched(peer=peer, to=ONE, epoch=Epoch(5), end=Offset(end), last_epoch=3, durable=Offset(end), pulse=pulse)


def answer(asked: Fetched, diverging: EpochEnd | None = None, pulse: Session | None = None) -> FetchAnswer:
    return FetchAnswer(
        sender=asked.to,
        to=asked.peer,
        epoch=asked.epoch,
        leader=asked.to,
        end=asked.end,
        last_epoch=asked.last_epoch,
        served=True,
        high_watermark=Offset(10),
        diverging=diverging,
        pulse=pulse,
    )


def test_contact_in_a_fetch_session_counts_as_a_fetch_of_each_partition() -> None:
    led, session = leader(), Session(at=0.1)
    led.step(fetch(TWO, 10, session), now=0.1)
    assert led.deadline == 0.5  # to send BeginEpoch to replica 3 again
    led.step(fetch(THREE, 10), now=0.1)
    assert led.deadline == 0.1 + led.timing.check_quorum_s
    session.at = 60.0  # without an event for this replica
    assert led.deadline == 60.0 + led.timing.check_quorum_s
    assert has_quorum(led, 61.0)
    assert led.step(Tick(), now=61.0).moves == ()
    assert led.in_sync(60.0) == (ONE, TWO)
    led.progress(11, 11)  # replica 2 lags from now on
    assert led.in_sync(60.5) == (ONE, TWO)
    assert led.in_sync(90.5) == (ONE,)
    assert not has_quorum(led, 62.0)
    assert led.step(Tick(), now=62.0).moves[-1].to is Role.RESIGNED


def test_contact_in_a_fetch_session_counts_as_an_answer_to_each_partition() -> None:
    followed, session = follower(), Session(at=0.1)
    asked = followed.fetch()
    assert asked is not None
    followed.step(answer(asked, pulse=session), now=0.1)
    session.at = 60.0
    assert followed.deadline == 60.0 + followed.timing.fetch_timeout_s
    assert followed.step(Tick(), now=61.0).moves == ()
    refused = followed.step(
        VoteRequest(sender=THREE, to=TWO, epoch=Epoch(5), end=Offset(10), last_epoch=3, pre=True), now=61.0
    )
    assert [message.granted for message in refused.send if isinstance(message, VoteAnswer)] == [False]
    assert followed.step(Tick(), now=62.0).moves[-1].to is Role.PROSPECTIVE


def test_a_sync_report_counts_only_for_the_log_it_names() -> None:
    """A late report from before a truncation must not count for the entries appended after it."""
    led = leader()
    assert isinstance(led.epochs, EpochCache)
    led.epochs.begin(5, 10)
    led.progress(12, 12)
    led.step(replace(fetch(TWO, 12), durable=Offset(10), last_epoch=5), now=0.1)
    report = Synced.of(replace(fetch(TWO, 12), durable=Offset(12)))
    assert led.step(report, now=0.1).committed is None
    assert led.step(replace(report, last_epoch=5), now=0.1).committed == 12


def test_a_deposed_leaders_high_watermark_is_not_taken() -> None:
    """A late answer of replica 3, leader of epoch 4 with another log, reaches a follower that is in epoch 5 already."""
    followed = follower(high_watermark=6)
    asked = followed.fetch()
    assert asked is not None
    late = replace(answer(replace(asked, to=THREE, epoch=Epoch(4))), diverging=EpochEnd(2, 7))
    effects = followed.step(late, now=0.1)
    assert effects.truncate_to is None
    assert not effects.append_fetched
    assert followed.high_watermark == 6
    followed.step(answer(asked), now=0.2)
    assert followed.high_watermark == 10


def test_a_truncation_below_the_high_watermark_raises() -> None:
    followed = follower()
    asked = followed.fetch()
    assert asked is not None
    with pytest.raises(Inconsistent, match="below the high watermark 10"):
        followed.step(answer(asked, diverging=EpochEnd(3, 9)), now=0.1)
    assert followed.log_end == 10


def test_two_leaders_in_one_epoch_raise() -> None:
    with pytest.raises(Inconsistent, match="epoch 5 has two leaders"):
        follower().step(EpochSeen(sender=THREE, to=TWO, epoch=Epoch(5), leader=THREE), now=0.1)
    with pytest.raises(Inconsistent, match="epoch 5 has two leaders"):
        leader().step(BeginEpoch(sender=THREE, to=ONE, epoch=Epoch(5)), now=0.1)


def test_a_replica_does_not_fetch_before_its_epoch_is_stored() -> None:
    made = replica(TWO)
    effects = made.step(BeginEpoch(sender=ONE, to=TWO, epoch=Epoch(5)))
    assert effects.store_vote is not None
    assert made.fetch() is None
    made.step(VoteStored(Epoch(4)))  # of an older epoch
    assert made.fetch() is None
    made.step(VoteStored(Epoch(5), effects.store_vote.voter))
    asked = made.fetch()
    assert asked is not None
    assert (asked.to, asked.epoch, asked.end, asked.last_epoch, asked.durable) == (ONE, 5, 10, 3, 10)


def test_a_leader_reports_the_progress_of_voters_and_observers() -> None:
    led = leader()
    led.step(fetch(TWO, 10), now=0.1)
    led.step(fetch(voter(4), 7), now=0.2)
    assert [(peer.replica, peer.votes, peer.end, peer.fetched) for peer in led.peers()] == [
        (TWO, True, 10, 0.1),
        (THREE, True, -1, 0.0),
        (voter(4), False, 7, 0.2),
    ]
    assert follower().peers() == ()
    assert follower().in_sync(0.0) == ()
    led.step(fetch(TWO, 10), now=31.0)
    led.step(fetch(THREE, 10), now=31.0)
    led.step(Tick(), now=31.0)  # an observer that stopped fetching is forgotten
    assert [peer.replica for peer in led.peers()] == [TWO, THREE]


@pytest.mark.parametrize("restarts", [False, True])
def test_an_observer_that_voted_also_asks_the_other_voters_for_the_leader(restarts: bool) -> None:
    """The candidate may never return, and a leader elected instead does not announce itself to an observer."""
    observer = Replica(
        me=FOUR,
        epoch=Epoch(7 if restarts else 6),
        log_end=Offset(10),
        high_watermark=Offset(10),
        voters=ALL_THREE,
        voted_for=TWO if restarts else NO_VOTER,
    )
    if not restarts:
        asked = VoteRequest(sender=TWO, to=FOUR, epoch=Epoch(7), end=Offset(12), last_epoch=Epoch(6))
        assert observer.step(asked, now=0.1).store_vote == Vote(epoch=Epoch(7), voter=TWO)
        observer.step(VoteStored(Epoch(7), TWO), now=0.2)
    now, found = 0.2, []
    for _ in range(6):
        now = max(now, observer.deadline) + 0.01
        observer.step(Tick(), now=now)
        request = observer.fetch()
        assert request is not None
        found.append(request.to)
    assert sorted(set(found)) == sorted(ALL_THREE)


def test_a_sole_voter_has_no_deadline() -> None:
    alone = Replica(me=ONE, epoch=Epoch(0), log_end=Offset(0), high_watermark=Offset(0))
    alone.step(Campaign())
    alone.step(VoteStored(Epoch(1)))
    assert has_quorum(alone, 1e9)
    assert alone.deadline == float("inf")
    assert alone.in_sync(1e9) == (ONE,)
    assert alone.fetch() is None


def test_voters_in_the_log_replace_those_of_the_metadata() -> None:
    made = replica(THREE)
    effects = made.step(VotersAppended(Offset(8), (ONE, TWO)))
    assert made.voters == (ONE, TWO)
    assert [move.to for move in effects.moves] == [Role.OBSERVER]


def test_voter_sets_are_kept_until_a_later_one_is_committed() -> None:
    history = VoterHistory((ONE,))
    history.appended(5, (ONE, TWO))
    history.appended(9, ALL_THREE)
    history.committed(6)
    assert history.entries() == ((5, (ONE, TWO)), (9, ALL_THREE))
    history.truncated(9)
    assert history.current == (ONE, TWO)
    history.committed(20)
    assert history.entries() == ((5, (ONE, TWO)),)
