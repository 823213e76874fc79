"""The tombstone horizon: how far a leader raises it, who must begin anew, and what grants hold back."""

from tailrace.model.ids import BrokerId, Epoch, Id, Offset
from tailrace.raft.effects import Effects
from tailrace.raft.events import BegunAnew
from tailrace.raft.messages import BeginEpoch, FetchAnswer, Fetched
from tailrace.raft.replica import Campaign, Replica, Role, VoteStored
from tailrace.raft.tombstones import Serving, raised, removable, serving
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import Voter, Voters

A, B, C = voters = tuple(Voter(BrokerId(number), Id(bytes([number]) * 16)) for number in (1, 2, 3))
OBSERVER = Voter(BrokerId(4), Id(b"4" * 16))
AWAY_S = 10.0


def leadership() -> Leadership:
    return Leadership(A, voters, 0, 100.0)


def fetch(
    led: Leadership, peer: Voter, end: int, now: float = 100.0, *, last: int = 1, durable: int | None = None
) -> None:
    reached = Offset(end if durable is None else durable)
    fetched = Fetched(peer=peer, to=A, epoch=Epoch(1), end=Offset(end), last_epoch=last, durable=reached)
    led.fetched(fetched, 1_000, now)


def test_the_horizon_waits_for_the_replica_that_is_furthest_behind() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 300)
    fetch(led, OBSERVER, 200)
    assert raised(led, covered=800, high_watermark=900, now=101.0, away_s=AWAY_S) == 200
    fetch(led, OBSERVER, 950)
    fetch(led, C, 950)
    assert raised(led, covered=800, high_watermark=900, now=101.0, away_s=AWAY_S) == 800
    assert raised(led, covered=950, high_watermark=700, now=101.0, away_s=AWAY_S) == 700


def test_the_horizon_passes_a_replica_that_was_away_for_long() -> None:
    led = leadership()
    fetch(led, B, 900)
    assert raised(led, 800, 900, now=110.0, away_s=AWAY_S) == -1, "C was not heard since the election"
    fetch(led, B, 900, now=111.0)
    assert raised(led, 800, 900, now=111.0, away_s=AWAY_S) == 800


def test_a_leader_alone_waits_for_nobody() -> None:
    assert raised(Leadership(A, (A,), 0, 100.0), 800, 700, now=100.0, away_s=AWAY_S) == 700


def test_a_replica_below_the_horizon_begins_anew() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 300)
    assert serving(led, C, 300, 300, 1_000) is Serving.RECORDS
    assert serving(led, C, 300, 301, 1_000) is Serving.BEGIN_ANEW
    fetch(led, C, 0, last=-1)
    assert serving(led, C, 0, 301, 1_000) is Serving.RECORDS
    fetch(led, C, 200)
    assert serving(led, C, 200, 301, 1_000) is Serving.RECORDS
    fetch(led, C, 199)
    assert serving(led, C, 199, 301, 1_000) is Serving.BEGIN_ANEW, "it fell back: what it had may be gone here"


def test_a_replica_with_an_empty_log_need_not_begin_anew_when_its_grant_has_ended() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 0, last=-1)
    assert removable(led, 301, now=100.0 + AWAY_S + 1, away_s=AWAY_S) == 301, "it was away for too long"
    assert serving(led, C, 0, 301, 1_000) is Serving.RECORDS
    assert removable(led, 301, now=100.0, away_s=AWAY_S) == 0


def test_a_grant_ends_with_the_leadership_and_when_the_logs_diverge() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 0, last=-1)
    led.diverged(C, 101.0)
    assert serving(led, C, 200, 301, 1_000) is Serving.BEGIN_ANEW
    other = leadership()
    fetch(other, B, 900)
    fetch(other, C, 200)
    assert serving(other, C, 200, 301, 1_000) is Serving.BEGIN_ANEW


def test_a_replica_waits_while_no_majority_without_it_has_everything_below_the_horizon() -> None:
    led = leadership()
    fetch(led, B, 900, durable=-1)  # damaged, it fetches its log again
    fetch(led, C, 300)
    assert serving(led, C, 300, 500, 1_000) is Serving.WAIT
    assert serving(led, B, 300, 500, 1_000) is Serving.BEGIN_ANEW, "it does not count anyway"
    fetch(led, B, 900)
    assert serving(led, C, 300, 500, 499) is Serving.WAIT
    assert serving(led, C, 300, 500, 500) is Serving.BEGIN_ANEW


def test_a_grant_holds_removals_back() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 0, last=-1)
    assert removable(led, 500, now=101.0, away_s=AWAY_S) == 0
    fetch(led, C, 400)
    assert removable(led, 500, now=101.0, away_s=AWAY_S) == 400
    fetch(led, C, 600)
    assert removable(led, 500, now=101.0, away_s=AWAY_S) == 500
    assert removable(led, 700, now=101.0, away_s=AWAY_S) == 600


def test_a_grant_ends_when_its_replica_was_away_for_long() -> None:
    led = leadership()
    fetch(led, B, 900)
    fetch(led, C, 400, last=-1)
    assert removable(led, 500, now=110.0, away_s=AWAY_S) == 400
    assert removable(led, 500, now=110.1, away_s=AWAY_S) == 500
    fetch(led, C, 410, now=111.0)
    assert serving(led, C, 410, 500, 1_000) is Serving.BEGIN_ANEW


# The replica that is told to begin anew


def replica(of: Voters = voters) -> Replica:
    return Replica(me=of[-1], epoch=Epoch(3), log_end=Offset(10), high_watermark=Offset(10), voters=of)


def told(to: Replica, epoch: int = 3) -> Effects:
    answer = FetchAnswer(
        sender=A,
        to=to.me,
        epoch=Epoch(epoch),
        leader=A,
        end=Offset(10),
        last_epoch=-1,
        served=True,
        high_watermark=Offset(90),
        begin_anew=True,
    )
    return to.step(answer, 1.0)


def test_a_follower_begins_anew_and_does_not_vote_until_it_has_caught_up() -> None:
    follower = replica()
    follower.step(BeginEpoch(sender=A, to=C, epoch=Epoch(3)))
    effects = told(follower)
    assert effects.begin_anew
    assert not effects.append_fetched
    follower.step(BegunAnew())
    assert (follower.role, follower.may_vote, follower.voters) == (Role.OBSERVER, False, voters)
    assert (follower.log_end, follower.durable, follower.high_watermark) == (0, 0, 0)
    fetching = follower.fetch()
    assert fetching is not None
    assert (fetching.to, fetching.end, fetching.durable) == (A, 0, -1)
    assert not follower.progress(5, 5), "the high watermark that was known is not that of the new log"


def test_only_the_leader_of_its_epoch_makes_a_replica_begin_anew() -> None:
    follower = replica()
    follower.step(BeginEpoch(sender=A, to=C, epoch=Epoch(3)))
    assert not told(follower, 2).begin_anew


def test_a_replica_without_a_leader_a_leader_and_a_sole_voter_never_begin_anew() -> None:
    assert not told(replica(), 2).begin_anew
    leader = replica((C,))
    leader.step(Campaign())
    leader.step(VoteStored(Epoch(4)))
    assert leader.role is Role.LEADER
    assert not told(leader).begin_anew
    assert not told(replica((C,))).begin_anew
