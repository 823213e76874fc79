"""The rules of elections: pre-votes (KIP-996), elections, granting votes and counting them (Raft §5.2)."""

from tailrace.model.ids import Epoch
from tailrace.raft import leading
from tailrace.raft.effects import EffectsBuilder
from tailrace.raft.events import VoteStored
from tailrace.raft.messages import VoteAnswer, VoteRefusal, VoteRequest
from tailrace.raft.roles import Cause, Role
from tailrace.raft.state import NEVER, State
from tailrace.raft.voters import Voter
from tailrace.raft.votes import Ballot, VoterState

# Starting an election


def start_pre_vote(state: State, turn: EffectsBuilder) -> None:
    """Without a leader: first ask the voters whether an election would be won (KIP-996)."""
    if not state.may_campaign or not state.move(Cause.TIMEOUT, turn):
        state.timeout_at = NEVER
        return
    state.ballot = Ballot(state.voters, pre=True)
    state.timeout_at = turn.now + state.timing.election(turn.chance)
    _request_votes(state, turn, pre=True)
    _count(state, state.me, True, turn)


def campaign(state: State, cause: Cause, turn: EffectsBuilder) -> None:
    """Begin an epoch with a vote for this replica. Once it is on disk, it counts and the requests are sent."""
    if not state.may_campaign or not state.move(cause, turn):
        return
    state.begin_epoch(Epoch(state.epoch + 1), state.me, turn)
    state.ballot = Ballot(state.voters, pre=False)
    state.timeout_at = turn.now + state.timing.election(turn.chance)
    _request_votes(state, turn, pre=False)


def _request_votes(state: State, turn: EffectsBuilder, *, pre: bool) -> None:
    for voter in state.others:
        request = VoteRequest(
            sender=state.me,
            to=voter,
            epoch=state.epoch,
            end=state.log_end,
            last_epoch=state.epochs.last,
            pre=pre,
        )
        state.send(request, turn)


# Granting votes


def vote_requested(state: State, request: VoteRequest, turn: EffectsBuilder) -> None:
    if request.to == state.me:  # Raft §5.1: a higher epoch is adopted, whatever the answer
        state.learn(request.epoch, None, turn)
    if state.following is not None and state.following.leader == request.sender and request.epoch == state.epoch:
        state.following.given_up = True  # a leader that asks for votes no longer leads its epoch
        state.timeout_at = turn.now + state.timing.election(turn.chance)
    why = refusal(state, request, turn.now)
    state.last_refusal = None if why is None else (request.sender, why)
    if why is None and not request.pre and state.voted_for != request.sender:
        state.vote(request.sender, turn)
        state.timeout_at = turn.now + state.timing.election(turn.chance)
    elif why is VoteRefusal.LOG_BEHIND and state.role in (Role.UNATTACHED, Role.FOLLOWER):
        # This replica can win where the candidate cannot: start its own election soon.
        state.timeout_at = min(state.timeout_at, turn.now + state.timing.backoff(1, turn.chance))
    answer = VoteAnswer(
        sender=state.me,
        to=request.sender,
        epoch=state.epoch,
        granted=why is None,
        pre=request.pre,
        leader=state.leader,
        why=why,
    )
    state.send(answer, turn)


def refusal(state: State, request: VoteRequest, now: float) -> VoteRefusal | None:
    following = state.following
    return VoterState(
        me=state.me,
        epoch=state.epoch,
        may_vote=state.may_vote,
        voted_for=state.voted_for,
        leader=state.leader,
        hears_leader=following is not None and following.is_heard(now, state.timing.fetch_timeout_s),
        end=state.log_end,
        last_epoch=state.epochs.last,
    ).refusal(request)


def vote_stored(state: State, event: VoteStored, turn: EffectsBuilder) -> None:
    if event.epoch != state.epoch or event.voter not in (None, state.voted_for):
        return  # a later vote is being stored
    state.stored = True
    turn.send += state.unsent
    state.unsent.clear()
    if state.ballot is not None and not state.ballot.pre:
        _count(state, state.me, True, turn)


# Counting votes


def vote_answered(state: State, answer: VoteAnswer, turn: EffectsBuilder) -> None:
    # A third replica's hint about a leader that this replica gave up is not news; that leader's own answer is.
    if state.following is None or answer.sender == answer.leader or answer.epoch > state.epoch:
        state.learn(answer.epoch, answer.leader, turn)
        if state.following is not None and answer.epoch == state.epoch and answer.sender == answer.leader:
            state.following.contact(turn.now, state.following.pulse)
    if answer.epoch == state.epoch and state.ballot is not None and state.ballot.pre == answer.pre:
        _count(state, answer.sender, answer.granted, turn)


def _count(state: State, voter: Voter, granted: bool, turn: EffectsBuilder) -> None:
    ballot = state.ballot
    assert ballot is not None
    ballot.count(voter, granted)
    if ballot.won and ballot.pre:
        campaign(state, Cause.PRE_VOTE_WON, turn)
    elif ballot.won:
        if state.move(Cause.ELECTED, turn):
            leading.begin(state, turn)
    elif ballot.lost:
        _lose_election(state, turn)


def _lose_election(state: State, turn: EffectsBuilder) -> None:
    state.ballot = None
    state.timeout_at = turn.now + state.timing.backoff(state.elections_lost, turn.chance)
    state.elections_lost += 1
    if state.following is not None:  # the others still hear from the leader
        state.learn(state.epoch, state.following.leader, turn)
