"""The effects of one event, as lines of a transcript."""

from collections.abc import Iterator
from itertools import zip_longest

from tailrace.raft.effects import Effects
from tailrace.raft.events import Event
from tailrace.raft.messages import EndEpoch, VoteAnswer
from tailrace.raft.roles import Move, Role
from tailrace.raft.voters import NO_VOTER, Voter, Voters
from tests.unit.raft.minimal_shell import Member


def name(voter: Voter) -> str:
    """3 for broker 3, and 3' for broker 3 with a new disk."""
    return f"{voter.broker}" + "'" * voter.directory[1]


def names(voters: Voters) -> str:
    return " ".join(map(name, voters))


def described(member: Member, event: Event, effects: Effects) -> Iterator[str]:
    me = name(member.me)
    for move, after in zip_longest(effects.moves, effects.moves[1:]):
        # A move to candidate begins an epoch, so the move before it was made in the previous epoch.
        begins = after is not None and after.to is Role.CANDIDATE
        yield f"{me} {_moved(member, move, member.replica.epoch - begins)}"
    if effects.truncate_to is not None:
        yield f"{me} truncates to {effects.truncate_to}"
    if effects.store_vote is not None:
        vote = effects.store_vote
        whom = "" if vote.voter == NO_VOTER else f", votes for {name(vote.voter)}"
        yield f"{me} stores epoch {vote.epoch}{whom}"
    if effects.append_leader_change:
        yield f"{me} appends a leader-change batch at {member.replica.log_end}"
    if effects.append_voters is not None:
        yield f"{me} appends voters {names(effects.append_voters)} at {member.replica.log_end}"
    if effects.refused is not None:
        yield f"{me} refuses: {effects.refused.value}"
    yield from _sent(effects)


def _moved(member: Member, move: Move, epoch: int) -> str:
    known = member.replica.following
    match move.to:
        case Role.PROSPECTIVE:
            rest = f", asks for pre-votes in epoch {epoch}"
        case Role.FOLLOWER | Role.OBSERVER if known is not None:
            rest = f"{', lost leader' if known.given_up else ' of'} {name(known.leader)}, epoch {epoch}"
        case Role.RESIGNED:
            rest = f": {move.cause.value}"
        case _:
            rest = f", epoch {epoch}"
    return f"{move.state.value} → {move.to.value}{rest}"


def _sent(effects: Effects) -> Iterator[str]:
    for message in effects.send:
        match message:
            case VoteAnswer(why=None, pre=True):
                yield f"{name(message.sender)} grants {name(message.to)} a pre-vote"
            case VoteAnswer(why=None):
                yield f"{name(message.sender)} votes for {name(message.to)} in epoch {message.epoch}"
            case VoteAnswer(why=why) if why is not None:
                yield f"{name(message.sender)} refuses {name(message.to)}: {why.value}"
            case EndEpoch(successors=successors) if message.to == successors[0]:
                yield f"{name(message.sender)} ends epoch {message.epoch}, successors {names(successors)}"
            case _:
                pass
