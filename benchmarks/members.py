"""Group members, many in one process, each on its own connection: of the classic protocol and of KIP-848.

They send heartbeats every tenth of a second, more often than real clients: the coordinator's work and the rounds of
the protocol are measured, not the time that clients wait between heartbeats.
"""

import asyncio
import struct
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tailrace.client.connection import Connection
from tailrace.groups.consumer_protocol import ConsumerProtocolSubscription
from tailrace.wire.compile import encode
from tailrace.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, OwnedTopic
from tailrace.wire.messages.heartbeat import HeartbeatRequest
from tailrace.wire.messages.join_group import JoinGroupRequest, JoiningProtocol
from tailrace.wire.messages.leave_group import LeaveGroupRequest, LeavingMember
from tailrace.wire.messages.sync_group import MemberAssignment, SyncGroupRequest

BEAT_S: Final = 0.1
SESSION_MS: Final = 30_000
MEMBER_ID_REQUIRED: Final = 79


def even(partitions: int, members: int) -> list[int]:
    """How many partitions each member gets."""
    least, more = divmod(partitions, members)
    return [least + (at < more) for at in range(members)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The group of the members."""

    group: str
    topic: str
    partitions: int
    changed: asyncio.Event  # set whenever the share or round of a member changes


class Member(Protocol):
    share: int  # number of assigned partitions
    round: int  # generation or member epoch

    async def run(self) -> None:
        """Join the group and stay in it until cancelled."""

    async def leave(self) -> None: ...


class Classic:
    """A member of the classic protocol; the group leader assigns partitions evenly."""

    def __init__(self, client: Connection, setting: Setting, name: str) -> None:
        self.share = 0
        self.round = -1
        self._client = client
        self._group = setting.group
        self._id = ""  # given by the coordinator
        self._partitions = setting.partitions
        self._changed = setting.changed
        self._subscription = struct.pack(">h", 1) + encode(ConsumerProtocolSubscription(topics=(setting.topic,)), 1)

    async def run(self) -> None:
        while True:
            joined = await self._join()
            parts: tuple[MemberAssignment, ...] = ()
            if joined.leader == self._id:
                parts = tuple(
                    MemberAssignment(member_id=one.member_id, assignment=struct.pack(">i", share))
                    for one, share in zip(joined.members, even(self._partitions, len(joined.members)), strict=True)
                )
            request = SyncGroupRequest(
                group_id=self._group, generation_id=joined.generation_id, member_id=self._id, assignments=parts
            )
            synced = await self._client.call(request, 3)
            if synced.error_code == 0:
                self.share, self.round = struct.unpack(">i", synced.assignment)[0], joined.generation_id
                self._changed.set()
                await self._stay(joined.generation_id)

    async def _join(self) -> Any:
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=self._id,
            protocol_type="consumer",
            protocols=(JoiningProtocol(name="range", metadata=self._subscription),),
        )
        joined = await self._client.call(request, 5)
        self._id = joined.member_id
        return await self._join() if joined.error_code == MEMBER_ID_REQUIRED else joined

    async def _stay(self, generation: int) -> None:
        """Send heartbeats until the member must rejoin."""
        request = HeartbeatRequest(group_id=self._group, generation_id=generation, member_id=self._id)
        while True:
            if (await self._client.call(request, 3)).error_code:
                return
            await asyncio.sleep(BEAT_S)

    async def leave(self) -> None:
        who = (LeavingMember(member_id=self._id),)
        await self._client.call(LeaveGroupRequest(group_id=self._group, members=who), 3)


class Consumer:
    """A member of KIP-848; it gives up revoked partitions at once."""

    def __init__(self, client: Connection, setting: Setting, name: str) -> None:
        self.share = 0
        self.round = 0
        self._client = client
        self._group = setting.group
        self._id = name
        self._topic = setting.topic
        self._changed = setting.changed

    async def run(self) -> None:
        answer = await self._beat(0, rebalance_timeout_ms=SESSION_MS, subscribed_topic_names=(self._topic,))
        while True:
            assert answer.error_code == 0, answer.error_message
            if answer.member_epoch != self.round:
                self.round = answer.member_epoch
                self._changed.set()
            changed = answer.assignment is not None
            owned = answer.assignment.topic_partitions if changed else ()
            if changed:
                self.share = sum(len(one.partitions) for one in owned)
                self._changed.set()
            else:
                await asyncio.sleep(BEAT_S)
            answer = await self._beat(self.round, owned if changed else None)

    async def _beat(self, epoch: int, owned: tuple[OwnedTopic, ...] | None = (), **more: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._id, member_epoch=epoch, topic_partitions=owned, **more
        )
        return await self._client.call(request, 1)

    async def leave(self) -> None:
        await self._beat(-1, None)


KINDS: Final[dict[str, type[Classic] | type[Consumer]]] = {"classic": Classic, "consumer": Consumer}
