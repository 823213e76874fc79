"""What can happen to a replica beside the messages of its peers; its own shell tells it."""

from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Epoch, Offset
from tailrace.raft.messages import Message
from tailrace.raft.voters import Voter, Voters


@frozen(kw_only=False)
class Tick:
    """Time has passed: due when `Replica.deadline` is reached, harmless at any time."""


@frozen(kw_only=False)
class Campaign:
    """Stand for election at once, without asking first: a sole voter's way to lead."""


@frozen(kw_only=False)
class LeaderGone:
    """The connection to `leader` was reset. `live` are the brokers that this one is connected to."""

    leader: BrokerId
    live: tuple[BrokerId, ...] = ()


@frozen(kw_only=False)
class VoteStored:
    """The vote given in `epoch` is on disk; None: whoever it was for."""

    epoch: Epoch
    voter: Voter | None = None


@frozen(kw_only=False)
class Resign:
    """Stop leading, and do not stand again in this life. Votes are given and entries fetched as before."""


@frozen(kw_only=False)
class Transfer:
    """Hand leadership to `successor`, once it has the whole log (Raft dissertation §3.10)."""

    successor: Voter


@frozen(kw_only=False)
class AddVoter:
    voter: Voter


@frozen(kw_only=False)
class RemoveVoter:
    voter: Voter


@frozen(kw_only=False)
class VotersAppended:
    """An entry at `offset` that names the voters was appended, or found at the start; told in the log's order."""

    offset: Offset
    voters: Voters


@frozen(kw_only=False)
class Truncated:
    """The log was cut, and ends at `end` now."""

    end: Offset


@frozen(kw_only=False)
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
