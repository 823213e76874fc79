"""One voter's view of one partition's quorum.

Theory, in the words of the code: an *epoch* has at most one leader. A candidate votes for itself, and the vote is on
disk before anyone hears of it. A leader appends; an entry is *committed* when a majority of voters has it durable; the
*high watermark* is the end of what is committed. Readers see nothing above it.

Rules kept here, each with its test:

- The epoch rises at every campaign, and a vote is given once per epoch (Raft §5.2).
- The high watermark never falls, and moves only over entries of the leader's own epoch (Raft §5.4.2).
- A new leader whose log end is its known high watermark writes nothing; any other writes one control batch of its
  epoch, which carries what lies below it over the line. So user offsets stay clean across quiet restarts.

What is left out so far: more than one voter. A sole voter wins its election by its own durable vote.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from tailrace.model.ids import BrokerId, Epoch, Id, Offset


class Role(Enum):
    UNATTACHED = "unattached"  # knows an epoch, follows and leads nobody
    CANDIDATE = "candidate"  # has asked for its own vote, which is not on disk yet
    LEADER = "leader"
    RESIGNED = "resigned"  # led, and gave it up: stopping, or its disk failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    """A broker and the disk it votes with: the same broker with another disk is somebody else."""

    broker: BrokerId
    directory: Id


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """Who gets this voter's vote in `epoch`. On disk before it counts."""

    epoch: Epoch
    voter: Voter


@dataclass(frozen=True, slots=True)
class Campaign:
    """Nobody leads: stand for election."""


@dataclass(frozen=True, slots=True)
class VoteStored:
    """The vote given in `epoch` is on disk."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Resign:
    """Stop leading, and do not stand again in this life."""


Event = Campaign | VoteStored | Resign


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What the shell must do, in this order: store the vote, then report it with `VoteStored`;
    append a leader-change batch of the new epoch, then serve."""

    store_vote: Vote | None = None
    append_leader_change: bool = False


nothing: Final = Effects()

transitions: Final[dict[tuple[Role, type[Event]], Role]] = {
    (Role.UNATTACHED, Campaign): Role.CANDIDATE,
    (Role.CANDIDATE, VoteStored): Role.LEADER,
    (Role.UNATTACHED, Resign): Role.RESIGNED,
    (Role.CANDIDATE, Resign): Role.RESIGNED,
    (Role.LEADER, Resign): Role.RESIGNED,
}


class Replica:
    def __init__(self, *, me: Voter, epoch: Epoch, log_end: Offset, high_watermark: Offset) -> None:
        assert 0 <= high_watermark <= log_end
        self._me = me
        self._log_end = log_end
        self._epoch_start = log_end  # where this leader's own entries begin; it commits nothing by counting below
        self.role = Role.UNATTACHED
        self.epoch = epoch  # never falls
        self.high_watermark = high_watermark  # never falls; never above the durable offset of a majority

    def step(self, event: Event) -> Effects:
        """Take one event. One that the table does not know in this role is stale news, and changes nothing."""
        if isinstance(event, VoteStored) and event.epoch != self.epoch:
            return nothing
        role = transitions.get((self.role, type(event)))
        if role is None:
            return nothing
        self.role = role
        match role:
            case Role.CANDIDATE:
                self.epoch = Epoch(self.epoch + 1)
                return Effects(store_vote=Vote(epoch=self.epoch, voter=self._me))
            case Role.LEADER:
                self._epoch_start = self._log_end
                return Effects(append_leader_change=self._log_end != self.high_watermark)
            case _:
                return nothing

    def progress(self, log_end: int, durable: int) -> bool:
        """The leader's log grew, or more of it is durable; tells whether the high watermark moved."""
        self._log_end = Offset(log_end)
        # Raft §5.4.2: an entry of an older epoch is committed only by one of ours on top of it.
        if self.role is Role.LEADER and durable > self._epoch_start and durable > self.high_watermark:
            self.high_watermark = Offset(durable)
            return True
        return False
