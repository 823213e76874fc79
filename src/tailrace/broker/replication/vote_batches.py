"""Group commit of votes: the votes of many partitions are stored with one fsync.

While one batch is being synced, further votes gather for the next. A later vote of a partition replaces one that is not
being written yet. A vote that the disk has no room for is not cast: its partition stays without a leader, clients
retry, and storing the vote is retried as well. A failed fsync is final: see `VoteJournal`.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from tailrace.broker.partitions.member import QuorumMember
from tailrace.broker.replication.vote_journal import VoteJournal
from tailrace.model.limits import PARTITIONS_PER_TURN_MAX
from tailrace.raft.effects import Vote

logger: Final = logging.getLogger(__name__)

RETRY_S: Final = 1.0


class VoteBatches:
    def __init__(self, journal: VoteJournal, spawn: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._journal = journal
        self._spawn = spawn
        self._waiting: dict[QuorumMember, Vote] = {}
        self._storing = False
        self.problem: OSError | None = None  # why votes cannot be stored now; logged once per reason

    def store(self, member: QuorumMember, vote: Vote) -> None:
        self._waiting[member] = vote
        if not self._storing:
            self._storing = True
            self._spawn(self._store())

    def forget(self, member: QuorumMember) -> None:
        """The partition was deleted."""
        self._waiting.pop(member, None)

    async def _store(self) -> None:
        try:
            while self._waiting:
                votes, self._waiting = self._waiting, {}
                try:
                    await self._journal.store([(member.key, vote) for member, vote in votes.items()])
                except OSError as error:
                    if self._journal.failed:
                        self.problem = self.problem or error
                        return  # the journal has logged it: no vote is cast until a restart
                    self._waiting = votes | self._waiting
                    self._report(error)
                    await asyncio.sleep(RETRY_S)
                else:
                    self.problem = None
                    for number, (member, vote) in enumerate(votes.items(), 1):
                        member.vote_stored(vote)
                        if number % PARTITIONS_PER_TURN_MAX == 0:
                            await asyncio.sleep(0)
        finally:
            self._storing = False

    def _report(self, problem: OSError) -> None:
        if str(problem) != str(self.problem):
            waiting = len(self._waiting)
            logger.error("cannot store the votes of %d partitions, retrying: %s", waiting, problem)
        self.problem = problem
