"""The rules of followers and observers: where to fetch, what to accept and to truncate, when to give up a leader."""

from typing import Final

from tailrace.model.ids import NO_ID, Offset
from tailrace.raft import electing
from tailrace.raft.divergence import truncation_offset
from tailrace.raft.effects import EffectsBuilder
from tailrace.raft.events import LeaderDisconnected, Truncated
from tailrace.raft.messages import BeginEpoch, EndEpoch, EpochSeen, FetchAnswer, Fetched
from tailrace.raft.roles import Cause, Role
from tailrace.raft.state import Inconsistent, State
from tailrace.raft.voters import NO_VOTER, Voter

FETCHING_ROLES: Final = (Role.FOLLOWER, Role.OBSERVER)


# Fetching


def fetch(state: State) -> Fetched | None:
    """The next fetch; None: none for now. A replica that is not the leader answers with the leader, if it knows it."""
    target = _fetch_target(state)
    if target is None or not state.stored:
        return None
    return Fetched(
        peer=state.me,
        to=target,
        epoch=state.epoch,
        end=state.log_end,
        last_epoch=state.epochs.last,
        durable=state.durable if state.may_vote else Offset(-1),
    )


def _fetch_target(state: State) -> Voter | None:
    known = state.following
    if known is not None and (state.role is Role.FOLLOWER or (state.role is Role.OBSERVER and not known.given_up)):
        return known.leader
    others = [voter for voter in state.others if voter.broker != state.me.broker]  # its former disk cannot answer
    if state.role not in (Role.OBSERVER, Role.UNATTACHED) or not others:
        return None
    if state.role is Role.UNATTACHED and state.voted_for not in (NO_VOTER, state.me):
        # The candidate may be the leader by now. Observers ask all voters: leaders do not announce themselves to them.
        return state.voted_for
    return others[state.leader_queries % len(others)]


def fetch_answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
    state.learn(answer.epoch, answer.leader, turn)
    known = state.following
    if not answer.served or answer.epoch != state.epoch or known is None:
        return  # only names the leader
    if state.role not in FETCHING_ROLES or (answer.end, answer.last_epoch) != (state.log_end, state.epochs.last):
        return  # for a log that has changed since the fetch
    known.contact(turn.now, answer.pulse)
    state.elections_lost = 0
    if answer.begin_anew:
        turn.begin_anew = state.voters != (state.me,)  # a sole voter has nobody to fetch from
    elif answer.diverging is None:
        known.matches(answer.high_watermark)
        turn.append_fetched = True
        if commit(state):
            turn.committed = state.high_watermark
    else:
        turn.truncate_to = _checked_truncation(state, truncation_offset(state.epochs, state.log_end, answer.diverging))


def _checked_truncation(state: State, end: int) -> Offset:
    if end < state.high_watermark:
        raise Inconsistent(
            f"leader {state.leader} requires truncation to {end}, below the high watermark {state.high_watermark}"
        )
    return Offset(end)


def commit(state: State) -> bool:
    """Adopt the high watermark of this epoch's leader, up to our log end."""
    return state.following is not None and state.commit(state.following.committed(state.log_end))


def truncated(state: State, event: Truncated, turn: EffectsBuilder) -> None:
    assert event.end >= state.high_watermark
    state.log_end = event.end
    state.durable = min(state.durable, event.end)
    state.history.truncated(event.end)
    state.update_observer_role(turn)


def begun_anew(state: State, turn: EffectsBuilder) -> None:
    """The log is empty. What it held was committed by a majority without this replica, which votes again once it has
    fetched everything; so its high watermark begins at 0 again, as after a restart with an empty disk."""
    state.log_complete = False
    state.log_end = state.durable = state.high_watermark = Offset(0)
    state.history.begun_anew()
    if state.following is not None:
        state.following.begun_anew()
    state.update_observer_role(turn)


def log_damaged(state: State, turn: EffectsBuilder) -> None:
    """It had resigned over the damage; from now on it looks for a leader, without a vote."""
    state.log_complete = state.retired = False
    if state.following is not None:
        state.following.begun_anew()
    state.timeout_at = turn.now + state.timing.election(turn.chance)
    state.update_observer_role(turn)


# Gaining and losing a leader


def epoch_begun(state: State, event: BeginEpoch, turn: EffectsBuilder) -> None:
    if event.epoch < state.epoch:
        state.send(EpochSeen(sender=state.me, to=event.sender, epoch=state.epoch, leader=state.leader), turn)
        return
    state.learn(event.epoch, event.sender, turn)
    if state.following is not None and state.following.leader.broker == event.sender.broker:
        state.following.leader = event.sender  # with its current disk
        state.following.contact(turn.now, state.following.pulse)


def fill_in_leader_disk(state: State) -> None:
    """Take the leader's disk from the voter set, if the leader was known by its broker id only."""
    known = state.following
    if known is not None and known.leader.directory == NO_ID:
        same = (voter for voter in state.voters if voter.broker == known.leader.broker)
        known.leader = next(same, known.leader)


def epoch_ended(state: State, event: EndEpoch, turn: EffectsBuilder) -> None:
    """The leader resigned. Its first successor needs no pre-votes: there is no leader that it could depose."""
    state.learn(event.epoch, None, turn)
    if event.epoch != state.epoch or state.leader not in (None, event.sender):
        return
    if state.following is not None:
        state.following.given_up = True
    if state.me not in event.successors:
        return
    rank = event.successors.index(state.me)
    if rank == 0:
        electing.campaign(state, Cause.CAMPAIGN, turn)
    else:
        state.timeout_at = turn.now + state.timing.backoff(rank, turn.chance)


def leader_disconnected(state: State, event: LeaderDisconnected, turn: EffectsBuilder) -> None:
    """The leader's connection was lost: the first live voter in assignment order starts at once, the others in turn."""
    known = state.following
    if known is None or known.given_up or known.leader.broker != event.leader or state.role not in FETCHING_ROLES:
        return
    known.given_up = True
    if state.role is Role.OBSERVER:
        state.leader_queries += 1
        return
    live = [voter for voter in state.others if voter != known.leader and voter.broker in event.live]
    rank = sum(state.voters.index(voter) < state.voters.index(state.me) for voter in live)
    if rank == 0:
        electing.start_pre_vote(state, turn)
    else:
        state.timeout_at = turn.now + state.timing.backoff(rank, turn.chance)


def deadline(state: State) -> float:
    known = state.following
    if known is None or known.given_up or state.role not in FETCHING_ROLES:
        return state.timeout_at
    return known.heard_at + state.timing.fetch_timeout_s


def timed_by_pulse(state: State) -> bool:
    known = state.following
    return known is not None and known.pulse is not None and not known.given_up and state.role in FETCHING_ROLES


def timed_out(state: State, turn: EffectsBuilder) -> None:
    """The deadline passed without contact with a leader."""
    if state.following is not None:
        state.following.given_up = True
    if state.role is Role.RESIGNED:
        state.move(Cause.TIMEOUT, turn)
        state.timeout_at = turn.now + state.timing.election(turn.chance)
        state.update_observer_role(turn)
    elif state.role is Role.OBSERVER:
        state.move(Cause.TIMEOUT, turn)
        state.leader_queries += 1
        state.timeout_at = turn.now + state.timing.fetch_timeout_s
    else:
        electing.start_pre_vote(state, turn)
