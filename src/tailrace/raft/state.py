"""What a replica remembers, and the few ways in which it changes.

Two promises are kept here for everybody. *Epoch and vote are on disk before anyone hears of them*: whatever is said
while the last one is not stored yet is held, and said when it is. *Roles change by the table alone* (`roles`).
"""

from typing import Final

from tailrace.model.ids import Epoch, Offset
from tailrace.raft.ballot import Ballot
from tailrace.raft.divergence import Epochs, NoEpochs
from tailrace.raft.effects import EffectsBuilder, Vote
from tailrace.raft.leader_view import Following
from tailrace.raft.messages import Message
from tailrace.raft.roles import TRANSITIONS, Cause, Move, Role
from tailrace.raft.timing import Timing
from tailrace.raft.tracking import Leadership
from tailrace.raft.voters import NO_VOTER, Voter, VoterHistory, Voters

USUAL_TIMING: Final = Timing()
NO_EPOCHS: Final = NoEpochs()
NEVER: Final = float("inf")


class Inconsistent(Exception):
    """The quorum broke a rule that it cannot break: a bug, or a disk that lied. Take the replica offline, loudly."""


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
        timing: Timing = USUAL_TIMING,
        now: float = 0.0,
        chance: float = 0.0,
    ) -> None:
        """As found on disk. `voters` are those of the metadata, nobody else by default; what the log says about
        them follows as `VotersAppended`. `may_vote` is false for a log that may have lost what it had vouched for."""
        assert 0 <= high_watermark <= log_end
        self.me = me
        self.timing = timing
        self.epochs = epochs
        self.epoch = epoch  # never falls
        self.voted_for = voted_for  # in this epoch, once and for all
        self.stored = True  # both are on disk
        self.held: list[Message] = []  # to be sent when they are
        self.log_end = log_end
        self.durable = Offset(0)  # what the shell reported with `progress`
        self.high_watermark = high_watermark  # never falls; never above the durable offset of a majority
        self.history = VoterHistory(voters or (me,))
        self.whole = may_vote  # our log has all that we ever vouched for
        self.retired = False  # will not stand again in this life
        self.following: Following | None = None  # the leader of this epoch, unless we are it
        self.leadership: Leadership | None = None  # if and only if we lead
        self.ballot: Ballot | None = None  # of the election we stand in
        self.lost = 0  # elections in a row
        self.asked = 0  # voters asked in vain who leads
        self.role = Role.UNATTACHED if self.votes else Role.OBSERVER
        self.wakes_at = now + timing.election(chance)  # when a role that hears from no leader does something about it

    # Questions

    @property
    def voters(self) -> Voters:
        return self.history.current

    @property
    def others(self) -> Voters:
        return tuple(voter for voter in self.voters if voter != self.me)

    @property
    def leader(self) -> Voter | None:
        """Who leads in this epoch, as far as known."""
        if self.leadership is not None:
            return self.me
        return None if self.following is None else self.following.leader

    @property
    def may_vote(self) -> bool:
        return self.whole or self.voters == (self.me,)  # a sole voter has nobody to learn from

    @property
    def votes(self) -> bool:
        """Whether this replica is one of the voters, and fit to be."""
        return self.me in self.voters and self.may_vote

    @property
    def stands(self) -> bool:
        return self.votes and not self.retired

    # Changes

    def move(self, cause: Cause, turn: EffectsBuilder) -> bool:
        """Take a row of the table; False: there is none, the news is stale."""
        to = TRANSITIONS.get((self.role, cause))
        if to is None:
            return False
        turn.moves.append(Move(self.role, cause, to))
        self.role = to
        return True

    def say(self, message: Message, turn: EffectsBuilder) -> None:
        if self.stored:
            turn.send.append(message)
        elif message not in self.held:
            self.held.append(message)

    def begin(self, epoch: Epoch, vote: Voter, turn: EffectsBuilder) -> None:
        """Enter a higher epoch, and vote in it."""
        assert epoch > self.epoch
        self.epoch = epoch
        self.following = self.leadership = self.ballot = None
        self.held.clear()
        self.vote(vote, turn)

    def vote(self, voter: Voter, turn: EffectsBuilder) -> None:
        self.voted_for = voter
        self.stored = False
        turn.store_vote = Vote(epoch=self.epoch, voter=voter)

    def learn(self, epoch: Epoch, leader: Voter | None, turn: EffectsBuilder) -> None:
        """Somebody says that `epoch` has begun, and perhaps who leads in it."""
        leader = None if leader is not None and leader.broker == self.me.broker else leader
        if epoch > self.epoch:
            self.begin(epoch, NO_VOTER, turn)
            if leader is None:
                self.move(Cause.HIGHER_EPOCH, turn)
                self.wakes_at = turn.now + self.timing.election(turn.chance)
                self.settle(turn)
        if epoch == self.epoch and leader is not None:
            self._follow(leader, turn)

    def _follow(self, leader: Voter, turn: EffectsBuilder) -> None:
        if self.leader is not None and self.leader.broker == leader.broker:
            leader = self.leader  # somebody whose voters are older names another disk
        # Raft §5.2, Election Safety: at most one leader in an epoch.
        if self.leader not in (None, leader):
            raise Inconsistent(f"epoch {self.epoch} has two leaders: {self.leader} and {leader}")
        known = self.following
        if known is None:
            self.following = Following(leader, turn.now)
        elif self.role is Role.OBSERVER and known.given_up:
            known.answered(turn.now, None)
        elif self.role is not Role.PROSPECTIVE:
            return  # no news
        else:  # the others hear from it, we do not: ask again soon unless it answers
            self.wakes_at = turn.now + self.timing.backoff(self.lost, turn.chance)
        self.ballot = None
        self.move(Cause.LEADER_FOUND, turn)
        self.settle(turn)

    def settle(self, turn: EffectsBuilder) -> None:
        """Be an observer if, and only if, this replica does not vote."""
        if self.role in (Role.UNATTACHED, Role.FOLLOWER) and not self.votes:
            self.move(Cause.REMOVED, turn)
            self.wakes_at = turn.now + self.timing.fetch_timeout_s
        elif self.role is Role.OBSERVER and self.votes:
            self.move(Cause.ADDED, turn)
            self.wakes_at = turn.now + self.timing.election(turn.chance)
            if self.following is not None:
                self.move(Cause.LEADER_FOUND, turn)

    def commit(self, offset: int) -> bool:
        """Raise the high watermark, which never falls."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end
        self.high_watermark = Offset(offset)
        self.history.committed(offset)
        return True
