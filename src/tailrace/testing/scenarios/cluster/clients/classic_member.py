"""A member of a consumer group: joins, shares partitions with the others, commits how far it has come, leaves, dies.

It follows the classic protocol. Whoever is made leader deals the partitions out in turn. A member works for a while in
a generation: it asks what is committed, commits a little more, and hears by heartbeat that it must join again. By
chance it leaves, falls silent and comes back as somebody else, or commits once more after it was sent away.
"""

import asyncio
from typing import Final, NamedTuple

from tailrace.testing.scenarios.cluster.clients.coordinator_client import GROUP_TYPE, CoordinatorClient
from tailrace.testing.scenarios.cluster.clients.group_offsets import GroupOffsets, MemberIdentity
from tailrace.testing.scenarios.cluster.clients.router import Router
from tailrace.testing.scenarios.cluster.invariants.group_history import GroupHistory
from tailrace.wire.errors import Error
from tailrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tailrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoiningProtocol
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse

GROUP: Final = "g"
PROTOCOL: Final = "in-turn"
PROTOCOL_TYPE: Final = "consumer"
JOIN_VERSION: Final = 7
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
LEAVE_VERSION: Final = 4
SESSION_TIMEOUT_MS: Final = 2_000
REBALANCE_TIMEOUT_MS: Final = 1_000
AGAIN_SECONDS: Final = 0.2
BEAT_SECONDS: Final = 0.4
LEAVES: Final = 0.03  # at each beat
FALLS_SILENT: Final = 0.03


class Assignment(NamedTuple):
    """A member's part in one generation."""

    standing: MemberIdentity
    partitions: tuple[int, ...]


class ClassicProtocolMember:
    def __init__(self, router: Router, ownership: GroupHistory, topic: str, partitions: int) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._ownership = ownership
        self._partitions = partitions
        self._coordinator = CoordinatorClient(router, GROUP, GROUP_TYPE)
        self._offsets = GroupOffsets(router, self._coordinator, GROUP, topic, ownership)
        self._member_id = ""
        self._left: tuple[MemberIdentity, dict[int, int | None]] = (MemberIdentity(-1, ""), {})  # what it had before
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            work = await self._join()
            if work is not None:
                for partition in work.partitions:
                    self._ownership.assigned(work.standing.generation, partition, work.standing.member_id)
                await self._commit_late()
                await self._work(work)
            await asyncio.sleep(AGAIN_SECONDS * (0.5 + self._rng.random()))

    # Joining

    async def _join(self) -> Assignment | None:
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=(JoiningProtocol(name=PROTOCOL, metadata=b""),),
        )
        joined: JoinGroupResponse | None = await self._coordinator.ask(request, JOIN_VERSION)
        if joined is None or self._is_sent_away(joined.error_code):
            if joined is not None and joined.error_code == Error.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id
            return None
        self._member_id = joined.member_id
        return await self._sync(joined)

    async def _sync(self, joined: JoinGroupResponse) -> Assignment | None:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL,
            assignments=self._dealt([one.member_id for one in joined.members]),
        )
        synced: SyncGroupResponse | None = await self._coordinator.ask(request, SYNC_VERSION)
        if synced is None or self._is_sent_away(synced.error_code):
            return None
        return Assignment(MemberIdentity(joined.generation_id, joined.member_id), tuple(synced.assignment))

    def _dealt(self, members: list[str]) -> tuple[MemberAssignment, ...]:
        """A byte for each partition; only a leader knows members."""
        parts = range(self._partitions)
        return tuple(
            MemberAssignment(member_id=member, assignment=bytes(parts[number :: len(members)]))
            for number, member in enumerate(members)
        )

    def _is_sent_away(self, code: int) -> bool:
        if code == Error.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._coordinator.told(code)
        return code != 0

    # Working

    async def _work(self, work: Assignment) -> None:
        reached = {partition: await self._offsets.committed(partition) for partition in work.partitions}
        while not self.stopping and await self._beats(work):
            for partition, offset in reached.items():
                if offset is not None:
                    reached[partition] = await self._offsets.commit(work.standing, partition, offset)
            draw = self._rng.random()
            if draw < LEAVES:
                await self._leave()
                return
            if draw < LEAVES + FALLS_SILENT:
                self._member_id = ""
                return
            await asyncio.sleep(BEAT_SECONDS * (0.5 + self._rng.random()))
        self._left = work.standing, reached

    async def _commit_late(self) -> None:
        """A part of it has not heard that there is another generation, and commits what it had in the last one."""
        standing, reached = self._left
        for partition, offset in reached.items():
            if offset is not None and self._rng.random() < 0.5:
                await self._offsets.commit(standing, partition, offset)
        reached.clear()

    async def _beats(self, work: Assignment) -> bool:
        generation, member_id = work.standing
        request = HeartbeatRequest(group_id=GROUP, generation_id=generation, member_id=member_id)
        heard: HeartbeatResponse | None = await self._coordinator.ask(request, HEARTBEAT_VERSION)
        return heard is None or not self._is_sent_away(heard.error_code)

    async def _leave(self) -> None:
        member, self._member_id = LeavingMember(member_id=self._member_id), ""
        await self._coordinator.ask(LeaveGroupRequest(group_id=GROUP, members=(member,)), LEAVE_VERSION)
