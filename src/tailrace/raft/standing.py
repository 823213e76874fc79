"""Which votes are given.

A vote is a promise, given once per epoch (Raft §5.2) and only to a log at least as good as one's own (Raft §5.4.1):
the later last epoch is better, then the longer log. So who is elected has every committed entry.

A pre-vote promises nothing. It is refused by whoever hears from a leader (KIP-996): what a replica that was cut off
thinks of the leader does not matter while the others hear from it.

A vote may be asked of a replica that takes itself for an observer, because the candidate can know a later voter set
(KIP-853); it gives one if the very disk it has is meant.
"""

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.messages import Refusal, VoteRequest
from tailrace.raft.voters import NO_VOTER, Voter


@frozen
class Standing:
    """All that a vote depends on. The request's epoch is not above `epoch`: that was settled before."""

    me: Voter
    epoch: Epoch
    may_vote: bool
    voted_for: Voter
    leader: Voter | None
    hears_leader: bool
    end: Offset
    last_epoch: int

    def refuses(self, asked: VoteRequest) -> Refusal | None:
        """Why the vote is not given; None: it is."""
        if asked.to != self.me:
            return Refusal.OTHER_DISK
        if asked.epoch < self.epoch:
            return Refusal.OLD_EPOCH
        if not self.may_vote:
            return Refusal.MAY_NOT_VOTE
        if self.leader == self.me:
            return Refusal.LEADS
        refusal = self._refuses_pre_vote() if asked.pre else self._refuses_vote(asked)
        if refusal is None and not self.good_enough(asked):
            return Refusal.SHORTER_LOG
        return refusal

    def _refuses_pre_vote(self) -> Refusal | None:
        return Refusal.HEARS_LEADER if self.hears_leader else None

    def _refuses_vote(self, asked: VoteRequest) -> Refusal | None:
        if self.leader is not None:
            return Refusal.KNOWS_LEADER
        return None if self.voted_for in (NO_VOTER, asked.sender) else Refusal.VOTED

    def good_enough(self, asked: VoteRequest) -> bool:
        # Raft §5.4.1: the log with the later last epoch is the better one; in the same epoch, the longer.
        return (asked.last_epoch, asked.end) >= (self.last_epoch, self.end)
