"""One replica as it is at one moment: the input of the invariants."""

from typing import NamedTuple

from tailrace.model.ids import TopicPartition
from tailrace.raft.voters import Voter, Voters


class ReplicaObservation(NamedTuple):
    server: str
    opening: int  # numbers the openings of logs: it changes when the broker restarts
    key: TopicPartition
    voter: Voter  # the replica itself
    voters: Voters  # as the replica knows them
    epoch: int
    stored: bool  # the epoch is on disk, so messages may carry it
    leads: bool
    high_watermark: int
    committed_epoch: int  # of the last entry below the high watermark; -1: there is none
    start: int
    end: int
    damaged: bool  # the replica has detected damage in its log

    def __str__(self) -> str:
        return (
            f"{self.key} on {self.server} (opening {self.opening}, epoch {self.epoch}, "
            f"{'leader, ' if self.leads else ''}{self.start} to {self.end}, high watermark {self.high_watermark})"
        )
