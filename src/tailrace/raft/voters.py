"""Voters, and the history of voter sets.

A voter is a broker *and* the disk it votes with (its directory id, KIP-853). The same broker with a new disk has lost
the votes and entries that it promised to keep, so it is a different replica: an observer until it is added as a voter.

Voter sets change through entries in the log, one voter at a time, and a set is in force as soon as its entry is
appended, committed or not (Raft dissertation §4.1). Majorities of two consecutive sets always share a voter. When the
entry is truncated the previous set is in force again; so the history of sets is kept, by offset.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.model.ids import NO_BROKER, NO_ID, BrokerId, Id


class Voter(NamedTuple):
    """A broker and the disk it votes with. A tuple, because a leader looks voters up at every fetch."""

    broker: BrokerId
    directory: Id


NO_VOTER: Final = Voter(broker=NO_BROKER, directory=NO_ID)  # stored with an epoch in which no vote was given

Voters = tuple[Voter, ...]  # in assignment order: the first is the preferred leader


def majority(count: int) -> int:
    return count // 2 + 1


class VoterHistory:
    """Voter sets by the offset of the entry that set them; the last one is in force."""

    def __init__(self, first: Voters) -> None:
        self._sets: list[tuple[int, Voters]] = [(-1, first)]  # offsets rise; -1: from the metadata, not from the log

    @property
    def current(self) -> Voters:
        return self._sets[-1][1]

    @property
    def changed_at(self) -> int:
        """The offset of the entry that set the current voters; -1: they are from the metadata."""
        return self._sets[-1][0]

    def entries(self) -> Iterable[tuple[int, Voters]]:
        return tuple(self._sets)

    def appended(self, offset: int, voters: Voters) -> None:
        assert offset > self.changed_at, f"voter set at {offset} after the one at {self.changed_at}"
        assert voters, "a voter set is empty"
        self._sets.append((offset, voters))

    def truncated(self, end: int) -> None:
        while self._sets[-1][0] >= end:
            self._sets.pop()

    def begun_anew(self) -> None:
        """The log was emptied: the set in force stays until the log has another."""
        self._sets = [(-1, self.current)]

    def committed(self, high_watermark: int) -> None:
        """Forget the sets before the last committed one: committed entries are never truncated."""
        while len(self._sets) > 1 and self._sets[1][0] < high_watermark:
            del self._sets[0]
