"""What can happen to a replica beside the messages of its peers; its own shell tells it."""

from dataclasses import dataclass

from tailrace.model.ids import BrokerId, Epoch, Offset
from tailrace.raft.messages import Message
from tailrace.raft.voters import Voter, Voters


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: due when `Replica.deadline` is reached, harmless at any time."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """Stand for election at once, without asking first: a sole voter's way to lead."""


@dataclass(frozen=True, slots=True)
class LeaderGone:
    """The connection to `leader` was reset. `live` are the brokers that this one is connected to."""

    leader: BrokerId
    live: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class VoteStored:
    """The vote given in `epoch` is on disk; None: whoever it was for."""

    epoch: Epoch
    voter: Voter | None = None


@dataclass(frozen=True, slots=True)
class Resign:
    """Stop leading, and do not stand again in this life. Votes are given and entries fetched as before."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Hand leadership to `successor`, once it has the whole log (Raft dissertation §3.10)."""

    successor: Voter


@dataclass(frozen=True, slots=True)
class AddVoter:
    voter: Voter


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    voter: Voter


@dataclass(frozen=True, slots=True)
class VotersAppended:
    """An entry at `offset` that names the voters was appended, or found at the start; told in the log's order."""

    offset: Offset
    voters: Voters


@dataclass(frozen=True, slots=True)
class Truncated:
    """The log was cut, and ends at `end` now."""

    end: Offset


@dataclass(frozen=True, slots=True)
class Repaired:
    """A replica that may not vote has again, on its disk, all that its leader had at some time since its return."""


Event = (
    Message
    | Tick
    | Campaign
    | LeaderGone
    | VoteStored
    | Resign
    | Transfer
    | AddVoter
    | RemoveVoter
    | VotersAppended
    | Truncated
    | Repaired
)
