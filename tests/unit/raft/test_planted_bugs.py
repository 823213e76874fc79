"""Mutation tests of the random histories: each of these planted bugs is found by some seed.

Most break one rule of the machine; `vote_not_persisted` breaks the shell.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tailrace.model.ids import Offset
from tailrace.raft import electing, following, leading, tracking, voter_changes
from tailrace.raft.effects import EffectsBuilder
from tailrace.raft.events import VoteStored
from tailrace.raft.messages import FetchAnswer, Fetched, Synced, VoteRefusal, VoteRequest
from tailrace.raft.state import Inconsistent, State
from tailrace.raft.votes import Ballot, VoterState
from tests.unit.raft.histories import History
from tests.unit.raft.minimal_shell import Member
from tests.unit.raft.stage import Stage
from tests.unit.raft.test_replica import test_a_deposed_leaders_high_watermark_is_not_taken
from tests.unit.state_tables import replay, transcripts_of

SEEDS_MAX = 400
STEPS = 6000

Patch = Callable[[pytest.MonkeyPatch], None]


def commit_by_counting_an_old_epoch(patch: pytest.MonkeyPatch) -> None:
    def commit(state: State) -> bool:
        assert state.leadership is not None
        return state.commit(state.leadership.committed(state.durable))

    patch.setattr(leading, "commit", commit)


def vote_not_persisted(patch: pytest.MonkeyPatch) -> None:
    def finish_vote(member: Member, now: float, chance: float) -> None:
        vote, member.unstored = member.unstored, None
        if vote is not None:
            member.step(VoteStored(vote.epoch, vote.voter), now, chance)

    patch.setattr(Member, "finish_vote", finish_vote)


def vote_sent_before_it_is_stored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(State, "send", lambda state, message, turn: turn.send.append(message))


def follower_counted_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    right = tracking.Leadership.fetched

    def fetched(leadership: Any, fetch: Fetched, *rest: Any) -> None:
        right(leadership, replace(fetch, durable=fetch.end), *rest)

    patch.setattr(tracking.Leadership, "fetched", fetched)


def progress_of_another_log_counted(patch: pytest.MonkeyPatch) -> None:
    """Found by these histories: a late `Synced` from before a truncation counted for the entries appended after it."""

    def synced(leadership: Any, event: Synced) -> None:
        tracker = leadership.trackers.get(event.peer)
        if tracker is not None:
            tracker.durable = max(tracker.durable, min(event.durable, tracker.end))

    patch.setattr(tracking.Leadership, "synced", synced)


def leader_counted_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    def commit(state: State) -> bool:
        assert state.leadership is not None
        durable = state.leadership.committed(state.log_end)
        return durable > state.leadership.epoch_start and state.commit(durable)

    patch.setattr(leading, "commit", commit)


def vote_for_a_worse_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VoterState, "is_up_to_date", lambda voter, request: True)


def vote_for_a_longer_log_of_an_older_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(VoterState, "is_up_to_date", lambda voter, request: request.end >= voter.end)


def two_votes_in_one_epoch(patch: pytest.MonkeyPatch) -> None:
    def refusal(voter: VoterState, request: VoteRequest) -> VoteRefusal | None:
        return None if voter.leader is None else VoteRefusal.KNOWS_LEADER

    patch.setattr(VoterState, "_vote_refusal", refusal)


def votes_counted_twice(patch: pytest.MonkeyPatch) -> None:
    def count(ballot: Any, voter: Any, granted: bool) -> None:
        ballot._votes[next((one for one, vote in ballot._votes.items() if vote is None), voter)] = granted

    patch.setattr(Ballot, "count", count)


def late_votes_counted(patch: pytest.MonkeyPatch) -> None:
    def answered(state: State, answer: Any, turn: EffectsBuilder) -> None:
        if state.ballot is not None and state.ballot.pre == answer.pre:
            electing._count(state, answer.sender, answer.granted, turn)

    patch.setattr(electing, "vote_answered", answered)


def high_watermark_before_logs_agree(patch: pytest.MonkeyPatch) -> None:
    right = following.fetch_answered

    def answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
        if answer.served and answer.epoch == state.epoch and state.following is not None:
            state.following.matches(answer.high_watermark)
            following.commit(state)
        right(state, answer, turn)

    patch.setattr(following, "fetch_answered", answered)


def truncation_below_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(following, "truncation_offset", lambda epochs, log_end, theirs: max(0, theirs.end - 2))
    patch.setattr(following, "_checked_truncation", lambda state, end: Offset(end))


def stale_answers_taken(patch: pytest.MonkeyPatch) -> None:
    """Truncate or append on the answer to an older fetch."""

    right = following.fetch_answered

    def answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
        right(state, replace(answer, end=state.log_end, last_epoch=state.epochs.last), turn)

    patch.setattr(following, "fetch_answered", answered)


def two_voter_changes_at_once(patch: pytest.MonkeyPatch) -> None:
    right = voter_changes.changed

    def changed(change: Any, history: Any, leadership: Any, high_watermark: int, *rest: Any) -> Any:
        return right(change, history, leadership, 1 << 40, *rest)

    patch.setattr(voter_changes, "changed", changed)


def voters_not_rolled_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("tailrace.raft.voters.VoterHistory.truncated", lambda history, end: None)


# Each with a seed that finds it; `python -m tests.unit.raft.test_planted_bugs` finds new seeds when histories change.
BUGS: dict[Patch, int] = {
    commit_by_counting_an_old_epoch: 347,
    vote_not_persisted: 0,
    vote_sent_before_it_is_stored: 0,
    follower_counted_before_it_is_durable: 1,
    progress_of_another_log_counted: 323,
    leader_counted_before_it_is_durable: 91,
    vote_for_a_worse_log: 5,
    vote_for_a_longer_log_of_an_older_epoch: 35,
    two_votes_in_one_epoch: 0,
    votes_counted_twice: 54,
    late_votes_counted: 25,
    high_watermark_before_logs_agree: 27,
    truncation_below_the_high_watermark: 0,
    stale_answers_taken: 0,
    two_voter_changes_at_once: 27,
    voters_not_rolled_back: 301,
}


def fails(seed: int) -> bool:
    try:
        History(seed, 3 if seed % 2 else 5).run(STEPS)
    except (Inconsistent, AssertionError):  # `Violated` is one
        return True
    return False


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_found(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fails(BUGS[bug])
    bug(monkeypatch)
    assert fails(BUGS[bug])


def test_high_watermark_from_a_deposed_leader_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch answer identifies its log, so random histories rarely find this bug; a written test does."""
    right = following.fetch_answered

    def answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
        if answer.served:
            state.commit(min(answer.high_watermark, state.log_end))
        right(state, answer, turn)

    monkeypatch.setattr(following, "fetch_answered", answered)
    with pytest.raises(AssertionError):
        test_a_deposed_leaders_high_watermark_is_not_taken()


def test_without_pre_vote_the_transcript_reads_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A returning voter without pre-votes deposes a healthy leader: that breaks a transcript, not an invariant."""

    class NoPreVote(Ballot):
        @property
        def won(self) -> bool:
            return self.pre or super().won

    monkeypatch.setattr(electing, "Ballot", NoPreVote)
    (text,) = [path.read_text() for path in transcripts_of("raft") if path.stem == "prevote"]
    assert "1 leader → unattached" not in text.split("\n\n")[0]
    assert "1 leader → unattached" in replay(text, Stage()).split("\n\n")[0]


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_found_by_some_seed(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert first_seed_that_fails() is not None


def first_seed_that_fails() -> int | None:
    return next((seed for seed in range(SEEDS_MAX) if fails(seed)), None)


if __name__ == "__main__":
    for bug in BUGS:
        with pytest.MonkeyPatch.context() as patch:
            bug(patch)
            sys.stdout.write(f"    {bug.__name__}: {first_seed_that_fails()},\n")
