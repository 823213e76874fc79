"""One election's votes: those of the voters there were when it began, each counted once, and pre-votes alike."""

from tailrace.raft.voters import Voter, Voters, majority


class Ballot:
    def __init__(self, voters: Voters, *, pre: bool) -> None:
        self.pre = pre
        self._votes: dict[Voter, bool | None] = dict.fromkeys(voters)

    def count(self, voter: Voter, granted: bool) -> None:
        """A voter answers once: a second answer, and one of somebody who was not asked, change nothing."""
        if self._votes.get(voter, granted) is None:
            self._votes[voter] = granted

    @property
    def won(self) -> bool:
        return self._answers(True) >= majority(len(self._votes))

    @property
    def lost(self) -> bool:
        """Too many refused for a majority to come."""
        return self._answers(False) > len(self._votes) - majority(len(self._votes))

    def _answers(self, granted: bool) -> int:
        return sum(vote is granted for vote in self._votes.values())
