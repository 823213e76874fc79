"""Which faults may happen at the same time, so that a correct cluster still loses nothing it acknowledged.

With fsync `always`, acknowledged batches are on the disks of a majority. Kills, pauses, partitions and power losses,
even of all machines at once, cannot lose them and need no limit. A flipped bit destroys one copy of a batch:

- above the recorded checkpoint, recovery cannot tell a flipped bit from a torn tail and cuts the log there. So such a
  bit is flipped on one machine only, while all replicas are complete, and no other fault is injected until that
  machine has caught up;
- below the checkpoint, recovery detects the damage, and the replica does not vote until it has refetched the log. Other
  faults may go on.

With fsync `interval` and `never`, acknowledged batches may be only in the memory of a majority. The same invariants are
checked, but a machine loses power only while every replica of every partition is complete, the next machine only after
the first has caught up, and never all at once. A partition with one or two replicas cannot lose a copy and keep a
majority: while there is one, no machine loses power and no bit is flipped.
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

REPLICAS_TO_SPARE_ONE: Final = 3  # with as many, a majority remains when one copy is lost


class Budget:
    def __init__(self, plan: Plan, servers: Sequence[Server], histories: CommittedHistories) -> None:
        self._plan = plan
        self._servers = servers
        self._histories = histories

    @property
    def may_lose_power(self) -> bool:
        """Whether a machine, whichever it is, may lose power now."""
        return self._plan.fsync == "always" or self.may_lose_a_copy

    @property
    def may_black_out(self) -> bool:
        return self._plan.fsync == "always"

    @property
    def may_lose_a_copy(self) -> bool:
        return self.all_replicas_complete and all(
            len(one.replica.voters) >= REPLICAS_TO_SPARE_ONE
            for server in self._servers
            for one in partitions_of(server)
            if one.key.topic_id != METADATA_TOPIC_ID  # which is synced under every policy
        )

    @property
    def all_replicas_complete(self) -> bool:
        """Whether every replica of every partition has all batches that any replica has, and may vote."""
        if not all(server.serves and not server.paused for server in self._servers):
            return False
        copies: dict[TopicPartition, list[Partition]] = {}
        for server in self._servers:
            for one in partitions_of(server):
                copies.setdefault(one.key, []).append(one)
        return all(self._is_complete(key, replicas) for key, replicas in copies.items())

    def _is_complete(self, key: TopicPartition, replicas: Sequence[Partition]) -> bool:
        """Whether every voter has opened its replica, and each has all that any replica has or ever committed.

        Replicas whose logs end at the same offset but in different leader epochs have diverged: one of them has a
        tail that it will truncate.
        """
        end = max(self._histories.of(key).end, *(one.log.end for one in replicas))
        epoch = max(one.log.epochs.last for one in replicas)
        opened = [one.me for one in replicas]
        return all(
            one.log.end == end
            and one.log.epochs.last == epoch
            and one.replica.may_vote
            and one.log.damage is None
            and all(voter in opened for voter in one.replica.voters)
            for one in replicas
        )
