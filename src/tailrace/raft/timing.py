"""Timeouts and backoff.

A leader that lost its quorum resigns before the others can elect another leader, so the check-quorum timeout is at most
the fetch timeout. Election timeouts and backoff are randomized, so that two replicas that split a vote do not split
every following one; `chance`, from [0, 1), is given by the shell.
"""

from tailrace.model.frozen import frozen


@frozen
class Timing:
    fetch_timeout_s: float = 2.0  # a follower without an answer for this long starts an election
    check_quorum_s: float = 1.5  # a leader that no majority has fetched from for this long resigns
    election_timeout_s: float = 1.0  # the least time for an election; randomized up to twice as much
    backoff_s: float = 0.05  # before the next election; doubles with each one lost
    backoff_max_s: float = 1.0
    announcement_s: float = 0.5  # between two BeginEpoch to a voter that has not fetched in this epoch
    lag_max_s: float = 30.0  # a replica that has not been at the log end for this long is out of sync

    def __post_init__(self) -> None:
        assert self.check_quorum_s <= self.fetch_timeout_s
        assert self.backoff_s <= self.backoff_max_s

    def election(self, chance: float) -> float:
        return self.election_timeout_s * (1 + chance)

    def backoff(self, rank: int, chance: float) -> float:
        """The wait of the successor with this rank, or after `rank` elections lost in a row."""
        return min(self.backoff_max_s, self.backoff_s * 2.0**rank) * (1 + chance)
