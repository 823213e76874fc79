"""A consumer group member of the classic protocol: it joins, syncs, heartbeats, commits offsets and leaves.

The group leader assigns the partitions round-robin. In each generation the member fetches the committed offsets and
commits slightly higher ones, until a heartbeat tells it to join again. At random it leaves, stops without leaving and
joins with a new member id, or commits once more with the generation it had before a rebalance.
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
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeavingMember
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
RETRY_SECONDS: Final = 0.2
HEARTBEAT_SECONDS: Final = 0.4
LEAVE_CHANCE: Final = 0.03  # after each heartbeat
VANISH_CHANCE: Final = 0.03  # after each heartbeat: stop without leaving


class Assignment(NamedTuple):
    """The partitions of a member in one generation."""

    member: MemberIdentity
    partitions: tuple[int, ...]


class ClassicProtocolMember:
    def __init__(self, router: Router, history: GroupHistory, topic: str, partitions: int) -> None:
        self.name = router.name
        self._router = router
        self._rng = router.rng
        self._history = history
        self._partitions = partitions
        self._coordinator = CoordinatorClient(router, GROUP, GROUP_TYPE)
        self._offsets = GroupOffsets(router, self._coordinator, GROUP, topic, history)
        self._member_id = ""
        # member and positions of the previous generation
        self._previous: tuple[MemberIdentity, dict[int, int | None]] = (MemberIdentity(-1, ""), {})
        self.stopping = False

    async def run(self) -> None:
        while not self.stopping:
            assignment = await self._join()
            if assignment is not None:
                for partition in assignment.partitions:
                    self._history.assigned(assignment.member.generation, partition, assignment.member.member_id)
                await self._commit_in_previous_generation()
                await self._consume(assignment)
            await asyncio.sleep(RETRY_SECONDS * (0.5 + self._rng.random()))

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
        joined: JoinGroupResponse | None = await self._coordinator.call(request, JOIN_VERSION)
        if joined is None or self._is_refused(joined.error_code):
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
            assignments=self._assign([one.member_id for one in joined.members]),
        )
        synced: SyncGroupResponse | None = await self._coordinator.call(request, SYNC_VERSION)
        if synced is None or self._is_refused(synced.error_code):
            return None
        return Assignment(MemberIdentity(joined.generation_id, joined.member_id), tuple(synced.assignment))

    def _assign(self, members: list[str]) -> tuple[MemberAssignment, ...]:
        """One byte per partition, round-robin. Only the group leader is given the members; others send nothing."""
        partitions = range(self._partitions)
        return tuple(
            MemberAssignment(member_id=member, assignment=bytes(partitions[number :: len(members)]))
            for number, member in enumerate(members)
        )

    def _is_refused(self, code: int) -> bool:
        if code == Error.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._coordinator.check_error(code)
        return code != 0

    # Consuming

    async def _consume(self, assignment: Assignment) -> None:
        positions = {partition: await self._offsets.committed(partition) for partition in assignment.partitions}
        while not self.stopping and await self._heartbeat(assignment.member):
            for partition, position in positions.items():
                if position is not None:
                    positions[partition] = await self._offsets.commit(assignment.member, partition, position)
            draw = self._rng.random()
            if draw < LEAVE_CHANCE:
                await self._leave()
                return
            if draw < LEAVE_CHANCE + VANISH_CHANCE:
                self._member_id = ""
                return
            await asyncio.sleep(HEARTBEAT_SECONDS * (0.5 + self._rng.random()))
        self._previous = assignment.member, positions

    async def _commit_in_previous_generation(self) -> None:
        """Commit with the generation before the rebalance, as a slow thread of a consumer might; it must be refused."""
        member, positions = self._previous
        for partition, position in positions.items():
            if position is not None and self._rng.random() < 0.5:
                await self._offsets.commit(member, partition, position)
        positions.clear()

    async def _heartbeat(self, member: MemberIdentity) -> bool:
        """Whether the member may go on in its generation."""
        request = HeartbeatRequest(group_id=GROUP, generation_id=member.generation, member_id=member.member_id)
        response: HeartbeatResponse | None = await self._coordinator.call(request, HEARTBEAT_VERSION)
        return response is None or not self._is_refused(response.error_code)

    async def _leave(self) -> None:
        member, self._member_id = LeavingMember(member_id=self._member_id), ""
        request = LeaveGroupRequest(group_id=GROUP, members=(member,))
        response: LeaveGroupResponse | None = await self._coordinator.call(request, LEAVE_VERSION)
        if response is not None and response.error_code == 0 and all(one.error_code == 0 for one in response.members):
            self._history.left(member.member_id)
