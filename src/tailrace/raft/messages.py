"""The messages between replicas; a message that one replica sends is an event for its receiver.

Each message carries the epoch of its sender. A message of an older epoch is stale; one of a higher epoch makes its
receiver leave its own epoch. Messages may be lost, duplicated, delayed and reordered.

A pre-vote is a flag of the vote messages (KIP-996). `VoteAnswer.why` is for logs and transcripts and is not sent.
"""

from enum import Enum
from typing import NamedTuple, Protocol

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.voters import Voter, Voters


class Pulse(Protocol):
    """The time of the last contact with a peer, shared by all partitions of a fetch session (KIP-227).

    The shell updates it once for all partitions; replicas only read it. An update counts, for every partition of the
    session, as a fetch or an answer in which nothing has changed.
    """

    @property
    def at(self) -> float: ...


class EpochEnd(NamedTuple):
    """An epoch, and the offset after its last entry in a leader's log."""

    epoch: int
    end: int


class VoteRefusal(Enum):
    """Why a vote or pre-vote was refused."""

    OLD_EPOCH = "stale epoch"
    OTHER_DISK = "the request is for another disk"
    MAY_NOT_VOTE = "may not vote: its log may have lost entries"
    LEADS = "is the leader"
    HEARS_LEADER = "still hears from the leader"
    KNOWS_LEADER = "knows the leader of this epoch"
    VOTED = "has voted for another candidate"
    LOG_BEHIND = "the candidate's log is behind"


@frozen
class VoteRequest:
    """A candidate asks for a vote in `epoch`; with `pre`, a prospective asks for a pre-vote for a later epoch."""

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
    why: VoteRefusal | None = None


@frozen
class BeginEpoch:
    """The sender is the leader of `epoch` (Kafka's BeginQuorumEpoch). Repeated until the voter fetches."""

    sender: Voter
    to: Voter
    epoch: Epoch


@frozen
class EndEpoch:
    """The leader of `epoch` resigns (Kafka's EndQuorumEpoch). The first successor starts an election at once."""

    sender: Voter
    to: Voter
    epoch: Epoch
    successors: Voters


@frozen
class EpochSeen:
    """Answer to a message of an older epoch: `epoch` has begun, and `leader` is its leader, if known."""

    sender: Voter
    to: Voter
    epoch: Epoch
    leader: Voter | None = None


@frozen
class Fetched:
    """A replica fetches from `end`, its log end; everything below `durable` is on its disk.

    `end` and `last_epoch`, the epoch of the last entry, identify the log (Raft §5.3, the Log Matching Property).
    """

    peer: Voter
    to: Voter
    epoch: Epoch
    end: Offset
    last_epoch: int
    durable: Offset  # -1: do not count this replica, its log may have lost entries
    pulse: Pulse | None = None  # set by the receiver's shell


@frozen
class FetchAnswer:
    """The answer to a fetch at `end` and `last_epoch`. Unless `served`, it only names the leader, if known."""

    sender: Voter
    to: Voter
    epoch: Epoch
    leader: Voter | None
    end: Offset
    last_epoch: int
    served: bool  # the sender is the leader of this epoch, and the fetch was of the same epoch
    high_watermark: Offset
    diverging: EpochEnd | None = None  # the follower's log is not a prefix of the leader's: no entries are sent
    begin_anew: bool = False  # the leader may lack tombstones from there on: fetch from an empty log (`tombstones`)
    pulse: Pulse | None = None  # set by the receiver's shell


@frozen
class Synced:
    """An fsync ended at a replica whose fetch, at `end` and `last_epoch`, is waiting at the leader.

    It identifies its log by these: entries that were durable before a truncation may have been replaced since.
    """

    peer: Voter
    to: Voter
    epoch: Epoch
    end: Offset
    last_epoch: int
    durable: Offset

    @classmethod
    def of(cls, fetch: Fetched) -> "Synced":
        """The report of an fsync while this fetch waits at the leader."""
        return cls(
            peer=fetch.peer,
            to=fetch.to,
            epoch=fetch.epoch,
            end=fetch.end,
            last_epoch=fetch.last_epoch,
            durable=fetch.durable,
        )


Message = VoteRequest | VoteAnswer | BeginEpoch | EndEpoch | EpochSeen | Fetched | FetchAnswer | Synced
