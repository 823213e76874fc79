"""A member's commits, and what it finds committed."""

from typing import Final, NamedTuple

from tailrace.testing.scenarios.cluster.clients.coordinator_client import CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    PartitionToCommit,
    TopicToCommit,
)
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest, OffsetFetchResponse

COMMIT_VERSION: Final = 9
FETCH_VERSION: Final = 8


class MemberIdentity(NamedTuple):
    """As whom one commits."""

    generation: int
    member_id: str


class GroupOffsets:
    def __init__(
        self, router: Router, coordinator: CoordinatorClient, group: str, topic: str, ownership: GroupHistory
    ) -> None:
        self._name = router.name
        self._rng = router.rng
        self._coordinator = coordinator
        self._group = group
        self._topic = topic
        self._ownership = ownership

    async def committed(self, partition: int) -> int | None:
        """What the group has committed; None: it could not be asked."""
        known = self._ownership.committed_so_far(partition)
        wanted = GroupTopicWanted(name=self._topic, partition_indexes=(partition,))
        request = OffsetFetchRequest(groups=(GroupWanted(group_id=self._group, topics=(wanted,)),))
        answer: OffsetFetchResponse | None = await self._coordinator.ask(request, FETCH_VERSION)
        if answer is None:
            return None
        self._coordinator.told(answer.groups[0].error_code)
        found = answer.groups[0].topics[0].partitions[0] if answer.groups[0].error_code == 0 else None
        if found is None or found.error_code != 0:
            return None
        self._ownership.found(partition, found.committed_offset, known, self._name)
        return max(0, found.committed_offset)

    async def commit(self, standing: MemberIdentity, partition: int, reached: int) -> int | None:
        """Commit a little more; how far one is then, None: unknown."""
        newest, offset = self._ownership.newest(partition), reached + self._rng.randrange(1, 4)
        part = PartitionToCommit(partition=partition, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=standing.generation,
            member_id=standing.member_id,
            topics=(TopicToCommit(name=self._topic, partitions=(part,)),),
        )
        answer: OffsetCommitResponse | None = await self._coordinator.ask(request, COMMIT_VERSION)
        if answer is None:
            return None
        code = answer.topics[0].partitions[0].error_code
        self._coordinator.told(code)
        if code != 0:
            return None
        self._ownership.acknowledged(standing.generation, newest, partition, offset, self._name)
        return offset
