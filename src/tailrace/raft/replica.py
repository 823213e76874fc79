"""One replica of one partition's Raft quorum, as a pure state machine.

An *epoch* (Raft's term) has at most one leader, elected by a majority of *voters*. The leader appends; the others
fetch, and each fetch tells the leader how far the follower's log goes. An entry is *committed* when a majority has it
durable; the *high watermark* is the end of the committed entries, and readers see nothing above it.

The rules, and the modules that keep them; docs/raft.md names a transcript for each:

- Epoch and vote are on disk before any message reveals them (`state`).
- A vote is given once per epoch, and only to an up-to-date log (`votes`; Raft §5.2, §5.4.1).
- An epoch begins only after a majority of pre-votes, except for a sole voter and for a successor that the leader named
  (`electing`; KIP-996).
- The high watermark never decreases, and advances only over entries of the leader's own epoch (`leading`; Raft §5.4.2).
- A new leader whose log end is its high watermark appends nothing. Any other appends one control batch of its epoch,
  which commits the entries below it. So an idle restart changes no offsets that users see (`leading`).
- A follower truncates what its leader does not have, and never below the high watermark (`following`, `divergence`).
- A leader that no majority fetches from resigns (`leading`); voters change one at a time (`voter_changes`).

Not part of this package: the log itself, and snapshots.
"""

from typing import assert_never

from tailrace.model.ids import Offset
from tailrace.raft import electing, following, leading, voter_changes
from tailrace.raft.effects import Effects, EffectsBuilder, Vote
from tailrace.raft.events import (
    AddVoter,
    BegunAnew,
    Campaign,
    Event,
    LeaderDisconnected,
    LogDamaged,
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

__all__ = ["Campaign", "Effects", "Event", "Replica", "Resign", "Role", "Vote", "VoteStored", "Voter"]


class Replica(State):
    """`step` takes one event and returns effects. Time is in seconds and only grows; `chance` is drawn from [0, 1)."""

    def start_timeout(self, now: float, chance: float, patience_s: float = 0.0) -> None:
        """Start the election timeout, `patience_s` longer if a leader may exist already or is being elected."""
        self.timeout_at = now + patience_s + self.timing.election(chance)

    def step(self, event: Event, now: float = 0.0, chance: float = 0.0) -> Effects:
        turn = EffectsBuilder(now, chance)
        match event:
            case Fetched():
                leading.serve_fetch(self, event, turn)
            case FetchAnswer():
                following.fetch_answered(self, event, turn)
            case Synced():
                leading.follower_synced(self, event, turn)
            case Tick():
                self._tick(turn)
            case VoteRequest():
                electing.vote_requested(self, event, turn)
            case VoteAnswer():
                electing.vote_answered(self, event, turn)
            case VoteStored():
                electing.vote_stored(self, event, turn)
            case BeginEpoch():
                following.epoch_begun(self, event, turn)
            case EndEpoch():
                following.epoch_ended(self, event, turn)
            case EpochSeen():
                self.learn(event.epoch, event.leader, turn)
            case LeaderDisconnected():
                following.leader_disconnected(self, event, turn)
            case Campaign():
                electing.campaign(self, Cause.CAMPAIGN, turn)
            case Resign():
                self.retired = True
                leading.resign(self, Cause.RESIGNS, turn)
            case Transfer():
                leading.transfer(self, event, turn)
            case BegunAnew():
                following.begun_anew(self, turn)
            case LogDamaged():
                following.log_damaged(self, turn)
            case AddVoter() | RemoveVoter():
                voter_changes.change_voters(self, event, turn)
            case VotersAppended():
                self._voters_appended(event, turn)
            case Truncated():
                following.truncated(self, event, turn)
            case Repaired():
                self.log_complete = True
                self.update_observer_role(turn)
            case _:
                assert_never(event)
        return turn.effects()

    def progress(self, log_end: int, durable: int) -> bool:
        """The log grew, or more of it is durable; whether the high watermark rose."""
        leadership = self.leadership
        if leadership is None:
            self.log_end, self.durable = Offset(log_end), Offset(durable)
            return following.commit(self)
        if leadership.trackers and log_end > self.log_end:
            leadership.grows(self.log_end)
        self.log_end, self.durable = Offset(log_end), Offset(durable)
        return leading.commit(self)

    def _tick(self, turn: EffectsBuilder) -> None:
        if self.leadership is not None:
            leading.tick(self, self.leadership, turn)
        elif turn.now >= following.deadline(self):
            following.timed_out(self, turn)

    def _voters_appended(self, event: VotersAppended, turn: EffectsBuilder) -> None:
        self.history.appended(event.offset, event.voters)
        if self.leadership is not None:
            self.leadership.set_voters(event.voters, turn.now)
        following.fill_in_leader_disk(self)
        self.update_observer_role(turn)

    # Queries

    @property
    def deadline(self) -> float:
        """When `Tick` is due, unless another event comes first."""
        return following.deadline(self) if self.leadership is None else leading.deadline(self, self.leadership)

    @property
    def timed_by_pulse(self) -> bool:
        """Whether a `Tick` becomes due only when a shared pulse stops: the owner of the pulse watches it then."""
        if self.leadership is not None:
            return self.leadership.timed_by_pulse
        return following.timed_by_pulse(self)

    def fetch(self) -> Fetched | None:
        """The next fetch to send; None: none for now."""
        return following.fetch(self)

    @property
    def hands_over(self) -> bool:
        """Whether a successor is catching up to take over leadership: append nothing for clients."""
        return self.leadership is not None and self.leadership.successor is not None

    def durable_on(self, count: int) -> int:
        """The offset up to which `count` voters have everything on disk, the leader itself included."""
        return -1 if self.leadership is None else self.leadership.durable_on(count, self.durable)

    def in_sync(self, now: float) -> Voters:
        """The voters that were caught up within `replica.lag.time.max.ms`; empty unless this replica is the leader."""
        leadership = self.leadership
        return () if leadership is None else leadership.in_sync(self.log_end, now - self.timing.lag_max_s)

    def all_voters_caught_up(self, now: float) -> bool:
        """Whether this replica is the leader, and every voter fetches and has its whole log."""
        leadership = self.leadership
        return leadership is not None and leadership.all_caught_up(self.log_end, now - self.timing.check_quorum_s)

    def peers(self) -> tuple[PeerProgress, ...]:
        """What a leader knows about each other voter and observer."""
        return () if self.leadership is None else self.leadership.progress(self.log_end)
