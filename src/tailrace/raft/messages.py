"""What replicas say to each other. What one sends, the other takes as an event.

Each names the epoch its sender is in. A message of an older epoch is stale; one of a higher epoch ends whatever its
receiver does in its own. All may be lost, repeated, late and out of order.

Pre-vote is a flag of the vote (KIP-996); the field `why` is for people and need not travel.
"""

from enum import Enum
from typing import NamedTuple, Protocol

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.voters import Voter, Voters


class Pulse(Protocol):
    """When a peer was last heard on something that many partitions share, such as a fetch session (KIP-227).

    The shell moves it, once for all partitions; replicas only look. It counts as a fetch, or an answer, that says
    "as before".
    """

    @property
    def at(self) -> float: ...


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last entry in somebody's log."""

    epoch: int
    end: int


class Refusal(Enum):
    """Why a vote was not given."""

    OLD_EPOCH = "that epoch is over"
    OTHER_DISK = "meant for another disk"
    MAY_NOT_VOTE = "may not vote: it may have lost entries"
    LEADS = "leads"
    HEARS_LEADER = "hears from the leader"
    KNOWS_LEADER = "knows who leads in this epoch"
    VOTED = "has voted for another"
    SHORTER_LOG = "has a better log"


@frozen
class VoteRequest:
    """A candidate asks for a vote in `epoch`; a prospective (`pre`) whether it would get one after `epoch`."""

    sender: Voter
    to: Voter
    epoch: Epoch
    end: Offset
    last_epoch: int
    pre: bool = False


@frozen
class VoteAnswer:
    sender: Voter
    to: Voter
    epoch: Epoch
    granted: bool
    pre: bool = False
    leader: Voter | None = None  # of `epoch`, as far as the sender knows
    why: Refusal | None = None


@frozen
class BeginEpoch:
    """The sender leads in `epoch` (Kafka's BeginQuorumEpoch). Repeated until the voter fetches."""

    sender: Voter
    to: Voter
    epoch: Epoch


@frozen
class EndEpoch:
    """The sender led in `epoch`, and gives it up (EndQuorumEpoch). The first successor stands at once."""

    sender: Voter
    to: Voter
    epoch: Epoch
    successors: Voters


@frozen
class EpochSeen:
    """`epoch` has begun, and `leader` leads in it if anybody is known to: told to whoever lives in an older one."""

    sender: Voter
    to: Voter
    epoch: Epoch
    leader: Voter | None = None


@frozen
class Fetched:
    """A replica asks for what comes after `end`; it has everything below `durable` on its disk.

    With `last_epoch`, the epoch of its last entry, this says all about its log (Raft §5.3, the Log Matching Property).
    """

    peer: Voter
    to: Voter
    epoch: Epoch
    end: Offset
    last_epoch: int
    durable: Offset  # -1: it vouches for nothing
    pulse: Pulse | None = None  # added by the shell of whoever receives it


@frozen
class FetchAnswer:
    """The answer to a fetch at `end` and `last_epoch`. Unless `served`, it says only who leads."""

    sender: Voter
    to: Voter
    epoch: Epoch
    leader: Voter | None
    end: Offset
    last_epoch: int
    served: bool  # the sender leads in this epoch, and the asker was in it, too
    high_watermark: Offset
    diverging: EpochEnd | None = None  # the asker's log is not a prefix of the leader's: no entries came along
    pulse: Pulse | None = None  # added by the shell of whoever receives it


@frozen
class Synced:
    """An fsync ended at a replica whose fetch, at `end` and `last_epoch`, is parked.

    It names the log it speaks of: what was durable before a truncation says nothing about what came after it.
    """

    peer: Voter
    to: Voter
    epoch: Epoch
    end: Offset
    last_epoch: int
    durable: Offset


Message = VoteRequest | VoteAnswer | BeginEpoch | EndEpoch | EpochSeen | Fetched | FetchAnswer | Synced
