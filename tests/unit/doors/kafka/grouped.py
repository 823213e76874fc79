"""Members of classic groups, each on its own connection: a waiting JoinGroup blocks later requests behind it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, Final

from tailrace.client.connection import Connection
from tailrace.ports import system_ports
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.heartbeat import HeartbeatRequest
from tailrace.wire.messages.join_group import JoinGroupRequest, JoiningProtocol
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.sync_group import MemberAssignment, SyncGroupRequest
from tests.unit.doors.kafka.served import Served
from tests.unit.groups.classic.stage import subscription

ANSWER_MAX_S: Final = 10.0
NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
SETTINGS: Final[dict[str, Any]] = {"group_initial_rebalance_delay_ms": 0, "group_min_session_timeout_ms": 100}


class Member:
    """The client side of a member; `id` and `generation` are from the last response."""

    def __init__(self, client: Connection, group: str) -> None:
        self._client = client
        self.group = group
        self.id = ""
        self.generation = -1
        self.instance_id: str | None = None
        self.session_timeout_ms = 10_000

    async def call(self, request: object, version: int) -> Any:
        async with asyncio.timeout(ANSWER_MAX_S):
            return await self._client.call(request, version)

    async def join(self, version: int = 9, *topics: str, protocol_type: str = "consumer") -> Any:
        """Join, and join again with the member id of the response."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=10_000,
            member_id=self.id,
            group_instance_id=self.instance_id,
            protocol_type=protocol_type,
            protocols=(JoiningProtocol(name="range", metadata=subscription(*(topics or ("t",)))),),
        )
        answer = await self.call(request, version)
        self.id, self.generation = answer.member_id, answer.generation_id
        if answer.error_code == 79:  # MEMBER_ID_REQUIRED
            return await self.join(version, *topics, protocol_type=protocol_type)
        return answer

    async def sync(self, parts: Mapping[str, bytes] = NOTHING, version: int = 5) -> Any:
        assignments = tuple(MemberAssignment(member_id=one, assignment=part) for one, part in parts.items())
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
            assignments=assignments,
        )
        return await self.call(request, version)

    async def heartbeat(self, version: int = 4) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.id,
            group_instance_id=self.instance_id,
        )
        error: int = (await self.call(request, version)).error_code
        return error

    async def leave(self, version: int = 5) -> Any:
        if version < 3:
            return await self.call(LeaveGroupRequest(group_id=self.group, member_id=self.id), version)
        one = LeavingMember(member_id=self.id, group_instance_id=self.instance_id)
        return await self.call(LeaveGroupRequest(group_id=self.group, members=(one,)), version)

    async def begin(self, *topics: str) -> None:
        """Join as the only member, with all partitions assigned to it."""
        assert (await self.join(9, *topics)).error_code == 0
        assert (await self.sync({self.id: b"all"})).assignment == b"all"

    def close(self) -> None:
        self._client.close()


@asynccontextmanager
async def members(served: Served, count: int, group: str = "g", client_id: str = "me") -> AsyncIterator[list[Member]]:
    assert (await served.call(FindCoordinatorRequest(coordinator_keys=(group,)), 6)).coordinators[0].error_code == 0
    net, port = system_ports().net, served.door.port
    found = [Member(await Connection.connect(net, "127.0.0.1", port, client_id), group) for _ in range(count)]
    try:
        yield found
    finally:
        for one in found:
            one.close()
