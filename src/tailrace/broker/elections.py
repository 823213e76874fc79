"""Standing for election, many partitions at a time: one fsync for all their votes.

A vote that the disk has no room for is not cast. Its partition has no leader then, clients are told to try again, and
so do we from time to time, with the same vote. The same holds for the batch with which a new leader carries over the
line what its predecessors left. Neither takes the broker down: partitions that lead already go on. A failed fsync is
another matter: see `VoteJournal`.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from tailrace.broker.partition import Partition
from tailrace.broker.votes import VoteJournal
from tailrace.model.faults import StorageFailed
from tailrace.raft.replica import Vote

events: Final = logging.getLogger(__name__)


class Elections:
    """One caller at a time."""

    def __init__(self, votes: VoteJournal) -> None:
        self._votes = votes
        self._uncast: dict[Partition, Vote] = {}
        self._unannounced: dict[Partition, None] = {}
        self._reported = ""  # what went wrong last: said once, however often it is tried

    async def lead(self, partitions: Sequence[Partition]) -> None:
        """Lead these, and those that could not be led before; done when what was recovered is committed.

        Until then a consumer would be told of an end that lies before what it has read.
        """
        self._uncast.update((partition, partition.campaign()) for partition in partitions)
        await self._cast()
        for partition in self._announced():
            with suppress(StorageFailed):  # then it went offline, loudly
                await partition.committed()
            self._unannounced.pop(partition, None)

    def forget(self, partition: Partition) -> None:
        """It is gone for good."""
        self._uncast.pop(partition, None)
        self._unannounced.pop(partition, None)

    async def _cast(self) -> None:
        votes = dict(self._uncast)
        if not votes:
            return
        try:
            await self._votes.store([(partition.key, vote) for partition, vote in votes.items()])
        except OSError as error:
            self._report(f"{len(votes)} partitions have no leader, their votes could not be stored: {error}")
            return
        self._uncast.clear()
        self._reported = ""
        for partition, vote in votes.items():
            partition.lead(vote)
            self._unannounced[partition] = None

    def _announced(self) -> list[Partition]:
        """Let those that lead say so; those that could."""
        announced = []
        for partition in list(self._unannounced):
            try:
                partition.announce()
            except StorageFailed as fault:
                if partition.log.refusal is not None:  # damaged or offline, which has been said
                    del self._unannounced[partition]
                else:
                    self._report(f"{partition.name} has no leader, its first batch could not be written: {fault}")
            else:
                announced.append(partition)
        return announced

    def _report(self, problem: str) -> None:
        if problem != self._reported:
            events.error("%s; trying again until it works", problem)
            self._reported = problem
