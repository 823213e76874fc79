"""The state of a replica, and the operations that change it.

Two invariants are kept here for all rules. *Epoch and vote are on disk before any message reveals them*: messages are
held back while the last vote is not stored, and sent when it is. *Roles change only by the table* in `roles`.
"""

from typing import Final

from tailrace.model.ids import Epoch, Offset
from tailrace.raft.divergence import Epochs, NoEpochs
from tailrace.raft.effects import EffectsBuilder, Vote
from tailrace.raft.leader_view import LeaderView
from tailrace.raft.messages import Message, VoteRefusal
from tailrace.raft.roles import TRANSITIONS, Cause, Move, Role
from tailrace.raft.timing import Timing
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import NO_VOTER, Voter, VoterHistory, Voters
from tailrace.raft.votes import Ballot

DEFAULT_TIMING: Final = Timing()
NO_EPOCHS: Final = NoEpochs()
NEVER: Final = float("inf")


class Inconsistent(Exception):
    """A Raft invariant is violated: by a bug, or by a disk that lost synced data. The replica must go offline."""


class State:
    def __init__(
        self,
        *,
        me: Voter,
        epoch: Epoch,
        log_end: Offset,
        high_watermark: Offset,
        voters: Voters = (),
        voted_for: Voter = NO_VOTER,
        may_vote: bool = True,
        epochs: Epochs = NO_EPOCHS,
        timing: Timing = DEFAULT_TIMING,
        now: float = 0.0,
        chance: float = 0.0,
    ) -> None:
        """The state as found on disk.

        `voters` are those of the metadata, by default this replica alone; voter sets in the log are reported afterwards
        as `VotersAppended`. `may_vote` is false if the log may have lost entries that it had reported as durable.
        """
        assert 0 <= high_watermark <= log_end
        self.me = me
        self.timing = timing
        self.epochs = epochs
        self.epoch = epoch  # never decreases
        self.voted_for = voted_for  # in this epoch; given once
        self.stored = True  # epoch and vote are on disk
        self.unsent: list[Message] = []  # held back until epoch and vote are stored
        self.log_end = log_end
        self.durable = Offset(0)  # as reported with `progress`
        self.high_watermark = high_watermark  # never decreases; never above what a majority has durable
        self.history = VoterHistory(voters or (me,))
        self.log_complete = may_vote  # no entry that was reported as durable may be missing
        self.retired = False  # told to resign: starts no election until the next restart
        self.following: LeaderView | None = None  # the leader of this epoch, unless it is this replica
        self.leadership: Leadership | None = None  # set if and only if this replica is the leader
        self.ballot: Ballot | None = None  # of the election that this replica runs in
        self.last_refusal: tuple[Voter, VoteRefusal] | None = None  # the last vote request that was refused: for logs
        self.elections_lost = 0  # in a row
        self.leader_queries = 0  # voters that were asked for the leader without success
        self.role = Role.UNATTACHED if self.is_voter else Role.OBSERVER
        self.timeout_at = now + timing.election(chance)  # of a role without a leader

    # Queries

    @property
    def voters(self) -> Voters:
        return self.history.current

    @property
    def others(self) -> Voters:
        return tuple(voter for voter in self.voters if voter != self.me)

    @property
    def leader(self) -> Voter | None:
        """The leader of this epoch, if known."""
        if self.leadership is not None:
            return self.me
        return None if self.following is None else self.following.leader

    @property
    def may_vote(self) -> bool:
        return self.log_complete or self.voters == (self.me,)  # a sole voter has no replica to catch up from

    @property
    def is_voter(self) -> bool:
        """Whether this replica is in the voter set and may vote."""
        return self.me in self.voters and self.may_vote

    @property
    def may_campaign(self) -> bool:
        return self.is_voter and not self.retired

    # Changes

    def move(self, cause: Cause, turn: EffectsBuilder) -> bool:
        """Make the transition for `cause`; False: the table has none for this role, the cause is stale."""
        to = TRANSITIONS.get((self.role, cause))
        if to is None:
            return False
        turn.moves.append(Move(self.role, cause, to))
        self.role = to
        return True

    def send(self, message: Message, turn: EffectsBuilder) -> None:
        if self.stored:
            turn.send.append(message)
        elif message not in self.unsent:
            self.unsent.append(message)

    def begin_epoch(self, epoch: Epoch, vote: Voter, turn: EffectsBuilder) -> None:
        """Enter a higher epoch with this vote, or `NO_VOTER`."""
        assert epoch > self.epoch
        self.epoch = epoch
        self.following = self.leadership = self.ballot = None
        self.unsent.clear()
        self.vote(vote, turn)

    def vote(self, voter: Voter, turn: EffectsBuilder) -> None:
        self.voted_for = voter
        self.stored = False
        turn.store_vote = Vote(epoch=self.epoch, voter=voter)

    def learn(self, epoch: Epoch, leader: Voter | None, turn: EffectsBuilder) -> None:
        """A message showed that `epoch` has begun, and perhaps its leader."""
        leader = None if leader is not None and leader.broker == self.me.broker else leader
        if epoch > self.epoch:
            self.begin_epoch(epoch, NO_VOTER, turn)
            if leader is None:
                self.move(Cause.HIGHER_EPOCH, turn)
                self.timeout_at = turn.now + self.timing.election(turn.chance)
                self.update_observer_role(turn)
        if epoch == self.epoch and leader is not None:
            self._follow(leader, turn)

    def _follow(self, leader: Voter, turn: EffectsBuilder) -> None:
        if self.leader is not None and self.leader.broker == leader.broker:
            leader = self.leader  # a peer with an older voter set names the same broker with another disk
        # Raft §5.2, Election Safety: at most one leader per epoch.
        if self.leader not in (None, leader):
            raise Inconsistent(f"epoch {self.epoch} has two leaders: {self.leader} and {leader}")
        known = self.following
        if known is None:
            self.following = LeaderView(leader, turn.now)
        elif self.role is Role.OBSERVER and known.given_up:
            known.contact(turn.now, None)
        elif self.role is not Role.PROSPECTIVE:
            return  # already known
        else:  # the others hear from the leader, this replica does not: retry soon unless the leader answers
            self.timeout_at = turn.now + self.timing.backoff(self.elections_lost, turn.chance)
        self.ballot = None
        self.move(Cause.LEADER_FOUND, turn)
        self.update_observer_role(turn)

    def update_observer_role(self, turn: EffectsBuilder) -> None:
        """Become an observer, or stop being one, when the voter set or the right to vote has changed."""
        if self.role in (Role.UNATTACHED, Role.FOLLOWER) and not self.is_voter:
            self.move(Cause.REMOVED, turn)
            self.timeout_at = turn.now + self.timing.fetch_timeout_s
        elif self.role is Role.OBSERVER and self.is_voter:
            self.move(Cause.ADDED, turn)
            self.timeout_at = turn.now + self.timing.election(turn.chance)
            if self.following is not None:
                self.move(Cause.LEADER_FOUND, turn)

    def commit(self, offset: int) -> bool:
        """Raise the high watermark, which never decreases; whether it rose."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end
        self.high_watermark = Offset(offset)
        self.history.committed(offset)
        return True
