"""When voters may be added or removed (Raft dissertation §4.1, KIP-853).

One at a time: any majority before the change and any majority after it then have a member in common, so two leaders
cannot be elected side by side. That holds only while at most one change is open, and only if the leader has committed
an entry of its own epoch before: otherwise a change of a predecessor, still unknown here, could be open as well.

A voter is added when it has caught up, as an observer: before, it would only slow down every commit.
"""

from tailrace.raft.effects import NotNow
from tailrace.raft.events import AddVoter, RemoveVoter
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import VoterHistory, Voters


def changed(
    change: AddVoter | RemoveVoter,
    history: VoterHistory,
    leadership: Leadership,
    high_watermark: int,
    log_end: int,
    caught_up_since: float,
) -> Voters | NotNow:
    """The voters after the change, or why it cannot be made now."""
    if history.changed_at >= high_watermark:
        return NotNow.CHANGE_UNDER_WAY
    if high_watermark <= leadership.epoch_start:
        return NotNow.EPOCH_NOT_COMMITTED
    voters = history.current
    if isinstance(change, RemoveVoter):
        if change.voter not in voters:
            return NotNow.NOT_A_VOTER
        return tuple(voter for voter in voters if voter != change.voter) or NotNow.LAST_VOTER
    if any(voter.broker == change.voter.broker for voter in voters):
        return NotNow.ALREADY_A_VOTER
    tracker = leadership.trackers.get(change.voter)
    if tracker is None or tracker.durable < 0 or tracker.caught_up_at(log_end) < caught_up_since:
        return NotNow.NOT_CAUGHT_UP
    return (*voters, change.voter)
