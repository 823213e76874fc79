"""How long everybody waits.

A leader gives up before those it does not hear may elect another, so its check-quorum time is below the fetch timeout.
Waits carry chance, which the shell hands in, so that two replicas which lost an election do not meet again and again.
"""

from tailrace.model.frozen import frozen


@frozen
class Timing:
    fetch_timeout_s: float = 2.0  # a follower without an answer for this long looks for another leader
    check_quorum_s: float = 1.5  # a leader without a majority's fetches for this long resigns
    election_timeout_s: float = 1.0  # an election may take this long, and at most twice
    backoff_s: float = 0.05  # before standing again; doubles with each election lost
    backoff_max_s: float = 1.0
    announcement_s: float = 0.5  # between two announcements to a voter that has not fetched in this epoch
    lag_max_s: float = 30.0  # a replica that was not at the end for this long is not in sync

    def __post_init__(self) -> None:
        assert self.check_quorum_s <= self.fetch_timeout_s
        assert self.backoff_s <= self.backoff_max_s

    def election(self, chance: float) -> float:
        return self.election_timeout_s * (1 + chance)

    def backoff(self, rank: int, chance: float) -> float:
        """For the `rank`th in line, or after as many elections lost."""
        return min(self.backoff_max_s, self.backoff_s * 2.0**rank) * (1 + chance)
