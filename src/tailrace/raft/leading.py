"""The rules of a leader: begin, serve fetches, commit, check the quorum, hand over leadership, resign."""

from tailrace.model.ids import Offset
from tailrace.raft.divergence import divergence
from tailrace.raft.effects import ChangeRefusal, EffectsBuilder
from tailrace.raft.events import Transfer
from tailrace.raft.messages import BeginEpoch, EndEpoch, FetchAnswer, Fetched, Synced
from tailrace.raft.roles import Cause
from tailrace.raft.state import NEVER, State
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import Voters


def begin(state: State, turn: EffectsBuilder) -> None:
    """Elected. Entries above the high watermark need an entry of this epoch on top to be committed (Raft §5.4.2)."""
    state.ballot = None
    state.elections_lost = 0
    state.leadership = Leadership(state.me, state.voters, state.log_end, turn.now)
    turn.append_leader_change = state.log_end != state.high_watermark
    announce(state, state.others, turn)


def announce(state: State, voters: Voters, turn: EffectsBuilder) -> None:
    for voter in voters:
        state.send(BeginEpoch(sender=state.me, to=voter, epoch=state.epoch), turn)


# Fetches


def serve_fetch(state: State, fetch: Fetched, turn: EffectsBuilder) -> None:
    state.learn(fetch.epoch, None, turn)
    leadership = state.leadership
    diverging = None
    serves = leadership is not None and fetch.epoch == state.epoch and fetch.to == state.me
    if leadership is not None and serves:
        diverging = divergence(state.epochs, state.log_end, fetch.end, fetch.last_epoch)
        if diverging is None:
            leadership.fetched(fetch, state.log_end, turn.now)
            after_progress(state, turn)
        else:
            leadership.diverged(fetch.peer, turn.now)
    answer = FetchAnswer(
        sender=state.me,
        to=fetch.peer,
        epoch=state.epoch,
        leader=state.leader,
        end=fetch.end,
        last_epoch=fetch.last_epoch,
        served=serves,
        high_watermark=state.high_watermark if serves else Offset(-1),
        diverging=diverging,
    )
    state.send(answer, turn)


def follower_synced(state: State, event: Synced, turn: EffectsBuilder) -> None:
    state.learn(event.epoch, None, turn)
    if state.leadership is not None and event.epoch == state.epoch:
        state.leadership.synced(event)
        after_progress(state, turn)


def after_progress(state: State, turn: EffectsBuilder) -> None:
    leadership = state.leadership
    assert leadership is not None
    if commit(state):
        turn.committed = state.high_watermark
        # Raft dissertation §4.2.2: a leader that removed itself leads until that is committed, without counting itself.
        if state.me not in state.voters and state.history.changed_at < state.high_watermark:
            resign(state, Cause.REMOVED, turn)
            return
    if leadership.successor is not None and leadership.has_all(leadership.successor, state.log_end):
        resign(state, Cause.RESIGNS, turn)


def commit(state: State) -> bool:
    leadership = state.leadership
    assert leadership is not None
    durable = leadership.committed(state.durable)
    # Raft §5.4.2: an entry of an older epoch is committed only by an entry of the leader's epoch on top of it.
    return durable > leadership.epoch_start and state.commit(durable)


# The quorum


def tick(state: State, leadership: Leadership, turn: EffectsBuilder) -> None:
    now = turn.now
    if now >= leadership.successor_until:  # the successor did not catch up: keep leading
        leadership.successor, leadership.successor_until = None, NEVER
    if not has_quorum(state, now):
        resign(state, Cause.QUORUM_LOST, turn)
    elif now >= leadership.announced + state.timing.announcement_s:
        leadership.announced = now
        leadership.forget_observers(now - state.timing.lag_max_s)
        announce(state, leadership.unheard(), turn)


def deadline(state: State, leadership: Leadership) -> float:
    announcement = leadership.announced + state.timing.announcement_s if leadership.unheard() else NEVER
    return min(announcement, leadership.successor_until, leadership.heard_quorum_at() + state.timing.check_quorum_s)


def has_quorum(state: State, now: float) -> bool:
    """Whether a majority has fetched within the check-quorum time. The sum is that of `deadline`: they round alike."""
    leadership = state.leadership
    return leadership is not None and now < leadership.heard_quorum_at() + state.timing.check_quorum_s


# Giving up leadership


def transfer(state: State, event: Transfer, turn: EffectsBuilder) -> None:
    leadership = state.leadership
    if leadership is None:
        turn.refused = ChangeRefusal.NOT_LEADER
    elif event.successor not in state.others:
        turn.refused = ChangeRefusal.NOT_A_VOTER
    elif turn.now - leadership.trackers[event.successor].seen >= state.timing.fetch_timeout_s:
        turn.refused = ChangeRefusal.NOT_CAUGHT_UP
    else:
        leadership.successor = event.successor
        leadership.successor_until = turn.now + state.timing.election_timeout_s
        if leadership.has_all(event.successor, state.log_end):
            resign(state, Cause.RESIGNS, turn)


def resign(state: State, cause: Cause, turn: EffectsBuilder) -> None:
    """Stop leading, and name the successors: the replica with most of the log first."""
    if not state.move(cause, turn):
        return
    leadership, state.leadership, state.ballot = state.leadership, None, None
    state.unsent.clear()
    state.timeout_at = NEVER if state.retired else turn.now + state.timing.election(turn.chance)
    if leadership is not None:
        successors = leadership.successors()
        for voter in successors:
            state.send(EndEpoch(sender=state.me, to=voter, epoch=state.epoch, successors=successors), turn)
