"""The rules of followers and observers: whom to fetch from, what to believe, what to cut, when to give a leader up."""

from typing import Final

from tailrace.model.ids import NO_ID, Offset
from tailrace.raft import electing
from tailrace.raft.divergence import cut
from tailrace.raft.effects import EffectsBuilder
from tailrace.raft.events import LeaderGone, Truncated
from tailrace.raft.messages import BeginEpoch, EndEpoch, EpochSeen, FetchAnswer, Fetched
from tailrace.raft.roles import Cause, Role
from tailrace.raft.state import Inconsistent, State
from tailrace.raft.voters import NO_VOTER, Voter

FETCHING_ROLES: Final = (Role.FOLLOWER, Role.OBSERVER)


# Fetching


def fetch(state: State) -> Fetched | None:
    """What to ask, and whom; None: nobody, for now. Who is not the leader answers with who is."""
    source = _source(state)
    if source is None or not state.stored:
        return None
    return Fetched(
        peer=state.me,
        to=source,
        epoch=state.epoch,
        end=state.log_end,
        last_epoch=state.epochs.last,
        durable=state.durable if state.may_vote else Offset(-1),
    )


def _source(state: State) -> Voter | None:
    known = state.following
    if known is not None and (state.role is Role.FOLLOWER or (state.role is Role.OBSERVER and not known.given_up)):
        return known.leader
    others = [voter for voter in state.others if voter.broker != state.me.broker]  # our old disk answers nobody
    if state.role not in (Role.OBSERVER, Role.UNATTACHED) or not others:
        return None
    if state.role is Role.UNATTACHED and state.voted_for not in (NO_VOTER, state.me):
        return state.voted_for  # who may have been elected by now; who is no voter hears nothing if it was not
    return others[state.asked % len(others)]


def answered(state: State, answer: FetchAnswer, turn: EffectsBuilder) -> None:
    state.learn(answer.epoch, answer.leader, turn)
    known = state.following
    if not answer.served or answer.epoch != state.epoch or known is None:
        return  # it said who leads, and no more
    if state.role not in FETCHING_ROLES or (answer.end, answer.last_epoch) != (state.log_end, state.epochs.last):
        return  # to a log that we do not have any more
    known.answered(turn.now, answer.pulse)
    state.lost = 0
    if answer.diverging is None:
        known.matches(answer.high_watermark)
        turn.append_fetched = True
        if commit(state):
            turn.committed = state.high_watermark
    else:
        turn.truncate_to = _truncation(state, cut(state.epochs, state.log_end, answer.diverging))


def _truncation(state: State, end: int) -> Offset:
    if end < state.high_watermark:
        raise Inconsistent(f"to be cut at {end}, below the high watermark {state.high_watermark}, by {state.leader}")
    return Offset(end)


def commit(state: State) -> bool:
    """Take the leader's high watermark as far as our log goes; one of an older epoch is forgotten by now."""
    return state.following is not None and state.commit(state.following.committed(state.log_end))


def truncated(state: State, news: Truncated, turn: EffectsBuilder) -> None:
    assert news.end >= state.high_watermark
    state.log_end = news.end
    state.durable = min(state.durable, news.end)
    state.history.truncated(news.end)
    state.settle(turn)


# The leader's coming and going


def epoch_begun(state: State, news: BeginEpoch, turn: EffectsBuilder) -> None:
    if news.epoch < state.epoch:
        state.say(EpochSeen(sender=state.me, to=news.sender, epoch=state.epoch, leader=state.leader), turn)
        return
    state.learn(news.epoch, news.sender, turn)
    if state.following is not None and state.following.leader.broker == news.sender.broker:
        state.following.leader = news.sender  # it knows its disk best
        state.following.answered(turn.now, state.following.pulse)


def voters_known(state: State) -> None:
    """A leader may be followed before the log says which disk it has."""
    known = state.following
    if known is not None and known.leader.directory == NO_ID:
        same = (voter for voter in state.voters if voter.broker == known.leader.broker)
        known.leader = next(same, known.leader)


def epoch_ended(state: State, news: EndEpoch, turn: EffectsBuilder) -> None:
    """The leader resigned. Its first successor stands at once, without asking: nobody is disturbed any more."""
    state.learn(news.epoch, None, turn)
    if news.epoch != state.epoch or state.leader not in (None, news.sender):
        return
    if state.following is not None:
        state.following.given_up = True
    if state.me not in news.successors:
        return
    rank = news.successors.index(state.me)
    if rank == 0:
        electing.campaign(state, Cause.CALLED, turn)
    else:
        state.wakes_at = turn.now + state.timing.backoff(rank, turn.chance)


def leader_gone(state: State, news: LeaderGone, turn: EffectsBuilder) -> None:
    """A reset connection: the first live voter in assignment order asks for votes at once, the others in turn."""
    known = state.following
    if known is None or known.given_up or known.leader.broker != news.leader or state.role not in FETCHING_ROLES:
        return
    known.given_up = True
    if state.role is Role.OBSERVER:
        state.asked += 1
        return
    line = [voter for voter in state.others if voter != known.leader and voter.broker in news.live]
    rank = sum(state.voters.index(voter) < state.voters.index(state.me) for voter in line)
    if rank == 0:
        electing.stand(state, turn)
    else:
        state.wakes_at = turn.now + state.timing.backoff(rank, turn.chance)


def deadline(state: State) -> float:
    known = state.following
    if known is None or known.given_up or state.role not in FETCHING_ROLES:
        return state.wakes_at
    return known.heard_at + state.timing.fetch_timeout_s


def rests(state: State) -> bool:
    known = state.following
    return known is not None and known.pulse is not None and not known.given_up and state.role in FETCHING_ROLES


def silence(state: State, turn: EffectsBuilder) -> None:
    """Nothing was heard in time."""
    if state.following is not None:
        state.following.given_up = True
    if state.role is Role.RESIGNED:
        state.move(Cause.SILENCE, turn)
        state.wakes_at = turn.now + state.timing.election(turn.chance)
        state.settle(turn)
    elif state.role is Role.OBSERVER:
        state.move(Cause.SILENCE, turn)
        state.asked += 1
        state.wakes_at = turn.now + state.timing.fetch_timeout_s
    else:
        electing.stand(state, turn)
