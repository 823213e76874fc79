"""How much may go wrong at a time, so that every promise still has to be kept.

With fsync `always` what was acknowledged is on a majority's disks. Kills, pauses, partitions, and power losses, of all
machines at once too, take none of it: they come as they like, and cost time only. A flipped bit takes one copy away.
One above the recorded checkpoint cannot be told from a torn tail, so it is made only in a calm, on one machine, and
everybody is there until that machine has caught up; one below is found and known, and other faults may go on.

With fsync `interval` and `never` it is a majority's memory that keeps what was acknowledged: the same promises are
checked, but a machine loses power only when every replica everywhere has everything, no other does before it has caught
up again, and never all at once. Partitions with one or two replicas have no majority to spare: there nobody
loses power then, and no bit flips.
"""

from collections.abc import Sequence
from typing import Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.ids import TopicPartition
from tailrace.model.topics import METADATA_TOPIC_ID
from tailrace.testing.scenarios.cluster.invariants.committed_history import CommittedHistories
from tailrace.testing.scenarios.cluster.invariants.observer import partitions_of
from tailrace.testing.scenarios.cluster.plan import Plan
from tailrace.testing.scenarios.cluster.server import Server

REPLICAS_TO_SPARE_ONE: Final = 3


class Budget:
    def __init__(self, plan: Plan, servers: Sequence[Server], histories: CommittedHistories) -> None:
        self._plan = plan
        self._servers = servers
        self._histories = histories

    @property
    def may_lose_power(self) -> bool:
        """Whether any one machine may."""
        return self._plan.fsync == "always" or self.may_lose_a_copy

    @property
    def may_black_out(self) -> bool:
        return self._plan.fsync == "always"

    @property
    def may_lose_a_copy(self) -> bool:
        return self.whole and all(
            len(one.replica.voters) >= REPLICAS_TO_SPARE_ONE
            for server in self._servers
            for one in partitions_of(server)
            if one.key.topic_id != METADATA_TOPIC_ID  # which is always synced
        )

    @property
    def whole(self) -> bool:
        """Whether every replica everywhere has all that any has, and may vote."""
        if not all(server.serves and not server.paused for server in self._servers):
            return False
        copies: dict[TopicPartition, list[Partition]] = {}
        for server in self._servers:
            for one in partitions_of(server):
                copies.setdefault(one.key, []).append(one)
        return all(self._is_whole(key, replicas) for key, replicas in copies.items())

    def _is_whole(self, key: TopicPartition, replicas: Sequence[Partition]) -> bool:
        """More may be committed than anybody knows yet, and a voter may not have heard of a new topic."""
        most = max(self._histories.of(key).end, *(one.log.end for one in replicas))
        there = [one.me for one in replicas]
        return all(
            one.log.end == most
            and one.replica.may_vote
            and one.log.damage is None
            and all(voter in there for voter in one.replica.voters)
            for one in replicas
        )
