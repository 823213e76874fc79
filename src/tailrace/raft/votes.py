"""Votes: which requests a voter grants, and the count of one election.

A vote is a promise. A voter gives it at most once per epoch (Raft §5.2), and only to a candidate whose log is at least
as up-to-date as its own (Raft §5.4.1): the log with the higher last epoch is more up-to-date, with equal last epochs
the longer one. So an elected leader has every committed entry.

A pre-vote promises nothing. A replica refuses it while it hears from a leader (KIP-996): a replica that was cut off
from the leader must not start an election while the others still hear from that leader.

A replica that considers itself an observer may be asked for a vote, because the candidate can know a later voter set
(KIP-853). It grants the vote if the request names the disk that it has.

An election counts the voters of the moment when it began, and each of them once. Pre-votes are counted the same way.
"""

from tailrace.model.frozen import frozen
from tailrace.model.ids import Epoch, Offset
from tailrace.raft.messages import VoteRefusal, VoteRequest
from tailrace.raft.voters import NO_VOTER, Voter, Voters, majority


@frozen
class VoterState:
    """Everything that a vote depends on. A request's epoch is at most `epoch`: a higher one was adopted before."""

    me: Voter
    epoch: Epoch
    may_vote: bool
    voted_for: Voter
    leader: Voter | None
    hears_leader: bool
    end: Offset
    last_epoch: int

    def refusal(self, request: VoteRequest) -> VoteRefusal | None:
        """Why the vote or pre-vote is refused; None: it is granted."""
        if request.to != self.me:
            return VoteRefusal.OTHER_DISK
        if request.epoch < self.epoch:
            return VoteRefusal.OLD_EPOCH
        if not self.may_vote:
            return VoteRefusal.MAY_NOT_VOTE
        if self.leader == self.me:
            return VoteRefusal.LEADS
        refusal = self._pre_vote_refusal() if request.pre else self._vote_refusal(request)
        if refusal is None and not self.is_up_to_date(request):
            return VoteRefusal.LOG_BEHIND
        return refusal

    def _pre_vote_refusal(self) -> VoteRefusal | None:
        return VoteRefusal.HEARS_LEADER if self.hears_leader else None

    def _vote_refusal(self, request: VoteRequest) -> VoteRefusal | None:
        if self.leader is not None:
            return VoteRefusal.KNOWS_LEADER
        return None if self.voted_for in (NO_VOTER, request.sender) else VoteRefusal.VOTED

    def is_up_to_date(self, request: VoteRequest) -> bool:
        """Whether the candidate's log is at least as up-to-date as this voter's (Raft §5.4.1)."""
        return (request.last_epoch, request.end) >= (self.last_epoch, self.end)


class Ballot:
    """The votes, or pre-votes, of one election."""

    def __init__(self, voters: Voters, *, pre: bool) -> None:
        self.pre = pre
        self._votes: dict[Voter, bool | None] = dict.fromkeys(voters)  # None: no answer yet

    def count(self, voter: Voter, granted: bool) -> None:
        """Count a voter's first answer; later ones, and answers of replicas that are not voters, change nothing."""
        if self._votes.get(voter, granted) is None:
            self._votes[voter] = granted

    @property
    def won(self) -> bool:
        return self._answers(True) >= majority(len(self._votes))

    @property
    def lost(self) -> bool:
        """So many voters refused that a majority is no longer possible."""
        return self._answers(False) > len(self._votes) - majority(len(self._votes))

    def _answers(self, granted: bool) -> int:
        return sum(vote is granted for vote in self._votes.values())

    def __str__(self) -> str:
        """Who has granted, refused, or not answered, by broker: for logs."""
        answers = {True: "granted by", False: "refused by", None: "no answer from"}
        parts = []
        for answer, words in answers.items():
            brokers = [str(voter.broker) for voter, vote in self._votes.items() if vote is answer]
            if brokers:
                parts.append(f"{words} {','.join(brokers)}")
        return f"{'pre-vote' if self.pre else 'vote'} {', '.join(parts)}"
