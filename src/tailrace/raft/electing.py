"""The rules of elections: standing for one, giving votes, counting them."""

from tailrace.model.ids import Epoch
from tailrace.raft import leading
from tailrace.raft.ballot import Ballot
from tailrace.raft.effects import EffectsBuilder
from tailrace.raft.events import VoteStored
from tailrace.raft.messages import Refusal, VoteAnswer, VoteRequest
from tailrace.raft.roles import Cause, Role
from tailrace.raft.standing import Standing
from tailrace.raft.state import NEVER, State
from tailrace.raft.voters import Voter

# Standing


def stand(state: State, turn: EffectsBuilder) -> None:
    """Nobody leads, as far as we hear: ask first whether an election would be won (KIP-996)."""
    if not state.stands or not state.move(Cause.SILENCE, turn):
        state.wakes_at = NEVER
        return
    state.ballot = Ballot(state.voters, pre=True)
    state.wakes_at = turn.now + state.timing.election(turn.chance)
    _ask(state, turn, pre=True)
    _count(state, state.me, True, turn)


def campaign(state: State, cause: Cause, turn: EffectsBuilder) -> None:
    """Begin an epoch with a vote for ourselves. It counts, and others are asked for theirs, once it is on disk."""
    if not state.stands or not state.move(cause, turn):
        return
    state.begin(Epoch(state.epoch + 1), state.me, turn)
    state.ballot = Ballot(state.voters, pre=False)
    state.wakes_at = turn.now + state.timing.election(turn.chance)
    _ask(state, turn, pre=False)


def _ask(state: State, turn: EffectsBuilder, *, pre: bool) -> None:
    for voter in state.others:
        request = VoteRequest(
            sender=state.me,
            to=voter,
            epoch=state.epoch,
            end=state.log_end,
            last_epoch=state.epochs.last,
            pre=pre,
        )
        state.say(request, turn)


# Giving votes


def asked(state: State, request: VoteRequest, turn: EffectsBuilder) -> None:
    if request.to == state.me:  # Raft §5.1: a higher epoch ends ours, whatever we answer
        state.learn(request.epoch, None, turn)
    if state.following is not None and state.following.leader == request.sender and request.epoch == state.epoch:
        state.following.given_up = True  # who asks for votes after its own epoch does not lead in it any more
        state.wakes_at = turn.now + state.timing.election(turn.chance)
    why = refusal(state, request, turn.now)
    if why is None and not request.pre and state.voted_for != request.sender:
        state.vote(request.sender, turn)
        state.wakes_at = turn.now + state.timing.election(turn.chance)
    elif why is Refusal.SHORTER_LOG and state.role in (Role.UNATTACHED, Role.FOLLOWER):  # then better we than they
        state.wakes_at = min(state.wakes_at, turn.now + state.timing.backoff(1, turn.chance))
    answer = VoteAnswer(
        sender=state.me,
        to=request.sender,
        epoch=state.epoch,
        granted=why is None,
        pre=request.pre,
        leader=state.leader,
        why=why,
    )
    state.say(answer, turn)


def refusal(state: State, request: VoteRequest, now: float) -> Refusal | None:
    following = state.following
    return Standing(
        me=state.me,
        epoch=state.epoch,
        may_vote=state.may_vote,
        voted_for=state.voted_for,
        leader=state.leader,
        hears_leader=following is not None and following.hears(now, state.timing.fetch_timeout_s),
        end=state.log_end,
        last_epoch=state.epochs.last,
    ).refuses(request)


def stored(state: State, news: VoteStored, turn: EffectsBuilder) -> None:
    if news.epoch != state.epoch or news.voter not in (None, state.voted_for):
        return  # a later one is under way
    state.stored = True
    turn.send += state.held
    state.held.clear()
    if state.ballot is not None and not state.ballot.pre:
        _count(state, state.me, True, turn)


# Counting them


def answered(state: State, answer: VoteAnswer, turn: EffectsBuilder) -> None:
    # A hint about a leader that we gave up ourselves is no news; its own word is.
    if state.following is None or answer.sender == answer.leader or answer.epoch > state.epoch:
        state.learn(answer.epoch, answer.leader, turn)
        if state.following is not None and answer.epoch == state.epoch and answer.sender == answer.leader:
            state.following.answered(turn.now, state.following.pulse)
    if answer.epoch == state.epoch and state.ballot is not None and state.ballot.pre == answer.pre:
        _count(state, answer.sender, answer.granted, turn)


def _count(state: State, voter: Voter, granted: bool, turn: EffectsBuilder) -> None:
    ballot = state.ballot
    assert ballot is not None
    ballot.count(voter, granted)
    if ballot.won and ballot.pre:
        campaign(state, Cause.PRE_VOTED, turn)
    elif ballot.won:
        if state.move(Cause.ELECTED, turn):
            leading.begin(state, turn)
    elif ballot.lost:
        _lose(state, turn)


def _lose(state: State, turn: EffectsBuilder) -> None:
    state.ballot = None
    state.wakes_at = turn.now + state.timing.backoff(state.lost, turn.chance)
    state.lost += 1
    if state.following is not None:  # the others still hear from it
        state.learn(state.epoch, state.following.leader, turn)
