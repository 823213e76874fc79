"""The rules of a leader: begin, answer fetches, commit, look after the quorum, hand over, resign."""

from tailrace.model.ids import Offset
from tailrace.raft.divergence import divergence
from tailrace.raft.effects import EffectsBuilder, NotNow
from tailrace.raft.events import AddVoter, RemoveVoter, Transfer
from tailrace.raft.messages import BeginEpoch, EndEpoch, FetchAnswer, Fetched, Synced
from tailrace.raft.roles import Cause
from tailrace.raft.state import NEVER, State
from tailrace.raft.tracking import Leadership
from tailrace.raft.voter_changes import changed
from tailrace.raft.voters import Voters


def begin(state: State, turn: EffectsBuilder) -> None:
    """Elected. What lies above the high watermark is carried over the line by an entry of this epoch (Raft §5.4.2)."""
    state.ballot = None
    state.lost = 0
    state.leadership = Leadership(state.me, state.voters, state.log_end, turn.now)
    turn.append_leader_change = state.log_end != state.high_watermark
    announce(state, state.others, turn)


def announce(state: State, voters: Voters, turn: EffectsBuilder) -> None:
    for voter in voters:
        state.say(BeginEpoch(sender=state.me, to=voter, epoch=state.epoch), turn)


# Fetches


def fetched(state: State, fetch: Fetched, turn: EffectsBuilder) -> None:
    state.learn(fetch.epoch, None, turn)
    ship = state.leadership
    diverging = None
    serves = ship is not None and fetch.epoch == state.epoch and fetch.to == state.me
    if ship is not None and serves:
        diverging = divergence(state.epochs, state.log_end, fetch.end, fetch.last_epoch)
        if diverging is None:
            ship.fetched(fetch, state.log_end, turn.now)
            after_progress(state, turn)
        else:
            ship.heard(fetch.peer, turn.now)
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
    state.say(answer, turn)


def synced(state: State, news: Synced, turn: EffectsBuilder) -> None:
    state.learn(news.epoch, None, turn)
    if state.leadership is not None and news.epoch == state.epoch:
        state.leadership.synced(news)
        after_progress(state, turn)


def after_progress(state: State, turn: EffectsBuilder) -> None:
    ship = state.leadership
    assert ship is not None
    if commit(state):
        turn.committed = state.high_watermark
        # Raft dissertation §4.2.2: a leader that removed itself leads until that is committed, and does not count.
        if state.me not in state.voters and state.history.changed_at < state.high_watermark:
            resign(state, Cause.REMOVED, turn)
            return
    if ship.successor is not None and ship.has_all(ship.successor, state.log_end):
        resign(state, Cause.RESIGNS, turn)


def commit(state: State) -> bool:
    ship = state.leadership
    assert ship is not None
    durable = ship.committed(state.durable)
    # Raft §5.4.2: an entry of an older epoch is committed only by one of ours on top of it.
    return durable > ship.epoch_start and state.commit(durable)


# The quorum


def tick(state: State, ship: Leadership, turn: EffectsBuilder) -> None:
    now = turn.now
    if now >= ship.successor_until:  # it did not catch up: lead on
        ship.successor, ship.successor_until = None, NEVER
    if not knows_quorum(state, now):
        resign(state, Cause.QUORUM_LOST, turn)
    elif now >= ship.announced + state.timing.announcement_s:
        ship.announced = now
        ship.forget_observers(now - state.timing.lag_max_s)
        announce(state, ship.unheard(), turn)


def deadline(state: State, ship: Leadership) -> float:
    announcement = ship.announced + state.timing.announcement_s if ship.unheard() else NEVER
    return min(announcement, ship.successor_until, ship.heard_quorum_at() + state.timing.check_quorum_s)


def knows_quorum(state: State, now: float) -> bool:
    """Whether a majority has fetched within the check-quorum time."""
    ship = state.leadership
    return ship is not None and now < ship.heard_quorum_at() + state.timing.check_quorum_s  # rounded as the deadline is


# Giving it up


def transfer(state: State, order: Transfer, turn: EffectsBuilder) -> None:
    ship = state.leadership
    if ship is None:
        turn.refused = NotNow.NOT_LEADER
    elif order.successor not in state.others:
        turn.refused = NotNow.NOT_A_VOTER
    elif turn.now - ship.trackers[order.successor].seen >= state.timing.fetch_timeout_s:
        turn.refused = NotNow.NOT_CAUGHT_UP
    else:
        ship.successor = order.successor
        ship.successor_until = turn.now + state.timing.election_timeout_s
        if ship.has_all(order.successor, state.log_end):
            resign(state, Cause.RESIGNS, turn)


def resign(state: State, cause: Cause, turn: EffectsBuilder) -> None:
    """Lead no more, and say who should: the one with most of the log first."""
    if not state.move(cause, turn):
        return
    ship, state.leadership, state.ballot = state.leadership, None, None
    state.held.clear()
    state.wakes_at = NEVER if state.retired else turn.now + state.timing.election(turn.chance)
    if ship is not None:
        successors = ship.successors()
        for voter in successors:
            state.say(EndEpoch(sender=state.me, to=voter, epoch=state.epoch, successors=successors), turn)


# Voters


def change_voters(state: State, change: AddVoter | RemoveVoter, turn: EffectsBuilder) -> None:
    ship = state.leadership
    if ship is None:
        turn.refused = NotNow.NOT_LEADER
        return
    since = turn.now - state.timing.fetch_timeout_s
    voters = changed(change, state.history, ship, state.high_watermark, state.log_end, since)
    if not isinstance(voters, NotNow):
        turn.append_voters = voters
        return
    turn.refused = voters
    # A quiet leader has nothing of its own to commit: let it write something, so that the next try finds it.
    turn.append_leader_change = voters is NotNow.EPOCH_NOT_COMMITTED and state.log_end == ship.epoch_start
