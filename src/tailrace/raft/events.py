"""The events of a replica, beside messages from its peers; its shell reports them."""

from tailrace.model.frozen import frozen
from tailrace.model.ids import BrokerId, Epoch, Offset
from tailrace.raft.messages import Message
from tailrace.raft.voters import Voter, Voters


@frozen(kw_only=False)
class Tick:
    """Time has passed. Due when `Replica.deadline` is reached; harmless at any other time."""


@frozen(kw_only=False)
class Campaign:
    """Start an election at once, without pre-votes: how a sole voter becomes leader."""


@frozen(kw_only=False)
class LeaderDisconnected:
    """The connection to `leader` was lost. `live` are the brokers that this broker is connected to."""

    leader: BrokerId
    live: tuple[BrokerId, ...] = ()


@frozen(kw_only=False)
class VoteStored:
    """The vote of `epoch` is on disk; `voter` None: whichever voter it was for."""

    epoch: Epoch
    voter: Voter | None = None


@frozen(kw_only=False)
class Resign:
    """Stop leading, and start no election until the next restart. The replica still votes and fetches."""


@frozen(kw_only=False)
class Transfer:
    """Hand leadership over to `successor` once it has the whole log (Raft dissertation §3.10)."""

    successor: Voter


@frozen(kw_only=False)
class AddVoter:
    voter: Voter


@frozen(kw_only=False)
class RemoveVoter:
    voter: Voter


@frozen(kw_only=False)
class VotersAppended:
    """A voter set at `offset` was appended, or found in the log at start; reported in log order."""

    offset: Offset
    voters: Voters


@frozen(kw_only=False)
class Truncated:
    """The log was truncated to `end`."""

    end: Offset


@frozen(kw_only=False)
class BegunAnew:
    """The log was set aside, as the leader demanded: it is empty, and this replica may not vote."""


@frozen(kw_only=False)
class LogDamaged:
    """The log is damaged, and it is stored that this replica may not vote until it has fetched everything again."""


@frozen(kw_only=False)
class Repaired:
    """A replica that may not vote has caught up on disk with a log end that its leader had after the restart."""


Event = (
    Message
    | Tick
    | Campaign
    | LeaderDisconnected
    | VoteStored
    | Resign
    | Transfer
    | AddVoter
    | RemoveVoter
    | VotersAppended
    | Truncated
    | BegunAnew
    | LogDamaged
    | Repaired
)
