"""One replica as it is at one moment: what the invariants are fed."""

from typing import NamedTuple

from tailrace.model.ids import TopicPartition
from tailrace.raft.voters import Voter, Voters


class ReplicaObservation(NamedTuple):
    server: str  # the machine it lives on
    life: int  # of this log on this machine: another one after each restart
    key: TopicPartition
    voter: Voter  # who it is
    voters: Voters  # who votes, as far as it knows
    epoch: int
    stored: bool  # the epoch is on disk, and may be heard of
    leads: bool
    high_watermark: int
    committed_epoch: int  # of the last entry below it; -1: there is none
    start: int
    end: int
    damaged: bool  # and it knows

    def __str__(self) -> str:
        return (
            f"{self.key} on {self.server} (life {self.life}, epoch {self.epoch}{', leads' if self.leads else ''}, "
            f"{self.start} to {self.end}, high watermark {self.high_watermark})"
        )
