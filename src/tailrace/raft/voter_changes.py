"""Adding and removing voters (Raft dissertation §4.1, KIP-853).

Voters change one at a time: any majority before the change and any majority after it then share a voter, so two leaders
cannot be elected at once. This needs two conditions. At most one change may be uncommitted. And the leader must have
committed an entry of its own epoch before: otherwise an uncommitted change of a previous leader, unknown to this one,
could exist as well.

A voter is added once it has caught up as an observer: before that it would only delay commits.
"""

from tailrace.raft.effects import ChangeRefusal, EffectsBuilder
from tailrace.raft.events import AddVoter, RemoveVoter
from tailrace.raft.state import State
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import VoterHistory, Voters


def change_voters(state: State, change: AddVoter | RemoveVoter, turn: EffectsBuilder) -> None:
    leadership = state.leadership
    if leadership is None:
        turn.refused = ChangeRefusal.NOT_LEADER
        return
    since = turn.now - state.timing.fetch_timeout_s
    voters = changed(change, state.history, leadership, state.high_watermark, state.log_end, since)
    if not isinstance(voters, ChangeRefusal):
        turn.append_voters = voters
        return
    turn.refused = voters
    # An idle leader has no entry of its own epoch to commit: append one, so that a later retry succeeds.
    turn.append_leader_change = voters is ChangeRefusal.EPOCH_NOT_COMMITTED and state.log_end == leadership.epoch_start


def changed(
    change: AddVoter | RemoveVoter,
    history: VoterHistory,
    leadership: Leadership,
    high_watermark: int,
    log_end: int,
    caught_up_since: float,
) -> Voters | ChangeRefusal:
    """The voters after the change, or why it cannot be made now."""
    if history.changed_at >= high_watermark:
        return ChangeRefusal.CHANGE_UNDER_WAY
    if high_watermark <= leadership.epoch_start:
        return ChangeRefusal.EPOCH_NOT_COMMITTED
    voters = history.current
    if isinstance(change, RemoveVoter):
        if change.voter not in voters:
            return ChangeRefusal.NOT_A_VOTER
        return tuple(voter for voter in voters if voter != change.voter) or ChangeRefusal.LAST_VOTER
    if any(voter.broker == change.voter.broker for voter in voters):
        return ChangeRefusal.ALREADY_A_VOTER
    tracker = leadership.trackers.get(change.voter)
    if tracker is None or tracker.durable < 0 or tracker.caught_up_at(log_end) < caught_up_since:
        return ChangeRefusal.NOT_CAUGHT_UP
    return (*voters, change.voter)
