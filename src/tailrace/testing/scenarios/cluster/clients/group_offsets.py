"""The OffsetCommit and OffsetFetch requests of a group member, checked against the history of its group."""

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
    generation: int  # of the classic protocol, or the member epoch of the consumer protocol
    member_id: str


class GroupOffsets:
    def __init__(
        self, router: Router, coordinator: CoordinatorClient, group: str, topic: str, history: GroupHistory
    ) -> None:
        self._name = router.name
        self._rng = router.rng
        self._coordinator = coordinator
        self._group = group
        self._topic = topic
        self._history = history

    async def committed(self, partition: int) -> int | None:
        """The committed offset, at least 0; None if the coordinator did not return it."""
        acknowledged = self._history.committed_so_far(partition)
        wanted = GroupTopicWanted(name=self._topic, partition_indexes=(partition,))
        request = OffsetFetchRequest(groups=(GroupWanted(group_id=self._group, topics=(wanted,)),))
        answer: OffsetFetchResponse | None = await self._coordinator.call(request, FETCH_VERSION)
        if answer is None:
            return None
        self._coordinator.check_error(answer.groups[0].error_code)
        found = answer.groups[0].topics[0].partitions[0] if answer.groups[0].error_code == 0 else None
        if found is None or found.error_code != 0:
            return None
        self._history.fetched(partition, found.committed_offset, acknowledged, self._name)
        return max(0, found.committed_offset)

    async def commit(self, member: MemberIdentity, partition: int, position: int) -> int | None:
        """Commit a slightly higher offset than `position`; returns it, None if it was not acknowledged."""
        newest, offset = self._history.newest(partition), position + self._rng.randrange(1, 4)
        part = PartitionToCommit(partition=partition, committed_offset=offset, committed_metadata="")
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=(TopicToCommit(name=self._topic, partitions=(part,)),),
        )
        answer: OffsetCommitResponse | None = await self._coordinator.call(request, COMMIT_VERSION)
        if answer is None:
            return None
        code = answer.topics[0].partitions[0].error_code
        self._coordinator.check_error(code)
        if code != 0:
            return None
        self._history.acknowledged(member.generation, newest, partition, offset, self._name)
        return offset
