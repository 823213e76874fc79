"""Who votes.

A voter is a broker *and* the disk it votes with: the same broker with another disk has none of the promises that the
lost one made, so it is somebody else, and an observer until it is added.

Voter sets change through the log, one voter at a time, and a set is in force from the moment its entry is appended,
committed or not (Raft dissertation §4.1). So any two sets that follow each other share a majority's member. When the
entry is truncated, the set before it is in force again; that is why the history is kept, by offset.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.model.ids import NO_ID, NOBODY, BrokerId, Id


class Voter(NamedTuple):
    """A broker and the disk it votes with. A tuple, because a leader looks them up at every fetch."""

    broker: BrokerId
    directory: Id


NO_VOTER: Final = Voter(broker=NOBODY, directory=NO_ID)  # whom a vote is for when an epoch is stored without one

Voters = tuple[Voter, ...]  # in assignment order: the first is the preferred leader


def majority(count: int) -> int:
    return count // 2 + 1


class VoterHistory:
    """Voter sets by the offset of the entry that brought them; the last is in force."""

    def __init__(self, first: Voters) -> None:
        self._sets: list[tuple[int, Voters]] = [(-1, first)]  # offsets rise; -1: from metadata, not from the log

    @property
    def current(self) -> Voters:
        return self._sets[-1][1]

    @property
    def changed_at(self) -> int:
        """The offset of the entry that brought the current set; -1: none did."""
        return self._sets[-1][0]

    def entries(self) -> Iterable[tuple[int, Voters]]:
        return tuple(self._sets)

    def appended(self, offset: int, voters: Voters) -> None:
        assert offset > self.changed_at, f"voters at {offset} after those at {self.changed_at}"
        assert voters, "no voters"
        self._sets.append((offset, voters))

    def truncated(self, end: int) -> None:
        while self._sets[-1][0] >= end:
            self._sets.pop()

    def committed(self, high_watermark: int) -> None:
        """What lies before the last committed set is never needed again: nothing below is ever truncated."""
        while len(self._sets) > 1 and self._sets[1][0] < high_watermark:
            del self._sets[0]
