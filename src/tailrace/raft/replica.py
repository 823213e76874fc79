"""One replica's view of one partition's quorum.

Theory, in the words of the code: an *epoch* has at most one leader, elected by a majority of *voters*. The leader
appends; the others fetch, and what they have is what they say when they fetch. An entry is *committed* when a majority
has it durable; the *high watermark* is the end of what is committed, and readers see nothing above it.

The rules, where they are kept, each with its transcript:

- Epoch and vote are on disk before anyone hears of them (`state`).
- A vote is given once per epoch, to a log at least as good (`standing`; Raft §5.2, §5.4.1).
- Nobody begins an epoch without a majority's pre-votes, but a sole voter and a successor that the leader named
  (`electing`; KIP-996).
- The high watermark never falls, and moves only over entries of the leader's own epoch (`leading`; Raft §5.4.2).
- A new leader whose log end is its known high watermark writes nothing; any other writes one control batch of its
  epoch, which carries what lies below it over the line. So user offsets stay clean across quiet restarts (`leading`).
- A follower cuts what its leader does not have, and never below the high watermark (`following`, `divergence`).
- A leader that no majority fetches from resigns (`leading`); voters change one at a time (`voter_changes`).

What is left out: the log itself, and snapshots of it.
"""

from typing import assert_never

from tailrace.model.ids import Offset
from tailrace.raft import electing, following, leading
from tailrace.raft.effects import Effects, EffectsBuilder, NotNow, Vote
from tailrace.raft.events import (
    AddVoter,
    Campaign,
    Event,
    LeaderGone,
    RemoveVoter,
    Repaired,
    Resign,
    Tick,
    Transfer,
    Truncated,
    VotersAppended,
    VoteStored,
)
from tailrace.raft.messages import (
    BeginEpoch,
    EndEpoch,
    EpochSeen,
    FetchAnswer,
    Fetched,
    Synced,
    VoteAnswer,
    VoteRequest,
)
from tailrace.raft.roles import Cause, Role
from tailrace.raft.state import State
from tailrace.raft.tracking import PeerProgress
from tailrace.raft.voters import Voter, Voters

__all__ = ["Campaign", "Effects", "Event", "NotNow", "Replica", "Resign", "Role", "Vote", "VoteStored", "Voter"]


class Replica(State):
    """One event in, effects out. Time is in seconds and only grows; `chance` is drawn from [0, 1) for each event."""

    def take_part(self, now: float, chance: float, patience_s: float = 0.0) -> None:
        """It takes part from now on. Who leads, or is about to, has this much longer to be heard of."""
        self.wakes_at = now + patience_s + self.timing.election(chance)

    def step(self, event: Event, now: float = 0.0, chance: float = 0.0) -> Effects:
        turn = EffectsBuilder(now, chance)
        match event:
            case Fetched():
                leading.fetched(self, event, turn)
            case FetchAnswer():
                following.answered(self, event, turn)
            case Synced():
                leading.synced(self, event, turn)
            case Tick():
                self._tick(turn)
            case VoteRequest():
                electing.asked(self, event, turn)
            case VoteAnswer():
                electing.answered(self, event, turn)
            case VoteStored():
                electing.stored(self, event, turn)
            case BeginEpoch():
                following.epoch_begun(self, event, turn)
            case EndEpoch():
                following.epoch_ended(self, event, turn)
            case EpochSeen():
                self.learn(event.epoch, event.leader, turn)
            case LeaderGone():
                following.leader_gone(self, event, turn)
            case Campaign():
                electing.campaign(self, Cause.CALLED, turn)
            case Resign():
                self.retired = True
                leading.resign(self, Cause.RESIGNS, turn)
            case Transfer():
                leading.transfer(self, event, turn)
            case AddVoter() | RemoveVoter():
                leading.change_voters(self, event, turn)
            case VotersAppended():
                self._voters_appended(event, turn)
            case Truncated():
                following.truncated(self, event, turn)
            case Repaired():
                self.whole = True
                self.settle(turn)
            case _:
                assert_never(event)
        return turn.effects()

    def progress(self, log_end: int, durable: int) -> bool:
        """The log grew, or more of it is durable; tells whether the high watermark moved."""
        ship = self.leadership
        if ship is None:
            self.log_end, self.durable = Offset(log_end), Offset(durable)
            return following.commit(self)
        if ship.trackers and log_end > self.log_end:
            ship.grows(self.log_end)
        self.log_end, self.durable = Offset(log_end), Offset(durable)
        return leading.commit(self)

    def _tick(self, turn: EffectsBuilder) -> None:
        if self.leadership is not None:
            leading.tick(self, self.leadership, turn)
        elif turn.now >= following.deadline(self):
            following.silence(self, turn)

    def _voters_appended(self, news: VotersAppended, turn: EffectsBuilder) -> None:
        self.history.appended(news.offset, news.voters)
        if self.leadership is not None:
            self.leadership.voters_are(news.voters, turn.now)
        following.voters_known(self)
        self.settle(turn)

    # Questions

    @property
    def deadline(self) -> float:
        """When `Tick` is due if nothing happens before."""
        return following.deadline(self) if self.leadership is None else leading.deadline(self, self.leadership)

    @property
    def rests(self) -> bool:
        """Whether a `Tick` can only become due when a pulse stands still: who watches pulses need not watch it."""
        if self.leadership is not None:
            return self.leadership.rests
        return following.rests(self)

    def fetch(self) -> Fetched | None:
        """What to ask for next, and whom; None: nobody, for now."""
        return following.fetch(self)

    @property
    def hands_over(self) -> bool:
        """Whether leadership is about to go to a successor, which has to catch up: append nothing for clients."""
        return self.leadership is not None and self.leadership.successor is not None

    def held_by(self, count: int) -> int:
        """The offset up to which `count` voters have everything on disk, the leader itself included."""
        return -1 if self.leadership is None else self.leadership.held_by(count, self.durable)

    def in_sync(self, now: float) -> Voters:
        """The voters that kept up within `replica.lag.time.max.ms`; only a leader knows."""
        ship = self.leadership
        return () if ship is None else ship.in_sync(self.log_end, now - self.timing.lag_max_s)

    def is_followed(self, now: float) -> bool:
        """Whether it leads, and every voter has all of its log and fetches."""
        ship = self.leadership
        return ship is not None and ship.all_there(self.log_end, now - self.timing.check_quorum_s)

    def peers(self) -> tuple[PeerProgress, ...]:
        """What a leader knows of each voter and observer but itself."""
        return () if self.leadership is None else self.leadership.progress(self.log_end)
