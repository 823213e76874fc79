"""A process that loads a group coordinator: many concurrent commits, or members that join and leave."""

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.members import KINDS, Member, Setting
from tailrace.client.connection import Connection
from tailrace.ports import system_ports
from tailrace.wire.messages.create_topics import CreateTopicsRequest, NewTopic
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.heartbeat import HeartbeatRequest
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit

LOOK_S: Final = 0.05
SETTLE_MAX_S: Final = 60.0
NOT_YET: Final = (14, 15, 16)  # the coordinator is loading, not available, or another broker


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    kind: str  # commits, classic or consumer
    host: str
    port: int
    count: int  # members, or connections that commit
    rounds: int
    seconds: float = 0.0  # duration of a round of commits


async def connected(work: GroupWork) -> Connection:
    return await Connection.connect(system_ports().net, work.host, work.port, "bench")


async def prepared(work: GroupWork, topic: str, partitions: int, groups: list[str]) -> None:
    """Create the topic, and wait until the coordinators are ready."""
    client = await connected(work)
    wanted = NewTopic(name=topic, num_partitions=partitions, replication_factor=1)
    await client.call(CreateTopicsRequest(topics=(wanted,), timeout_ms=10_000), 5)
    for group in groups:
        await found(client, group)
    client.close()


async def found(client: Connection, group: str) -> None:
    """Wait until the group's coordinator serves requests; FindCoordinator may name it before that."""
    stranger = HeartbeatRequest(group_id=group, generation_id=0, member_id="stranger")
    while True:
        named = (await client.call(FindCoordinatorRequest(key=group), 2)).error_code == 0
        if named and (await client.call(stranger, 3)).error_code not in NOT_YET:
            return
        await asyncio.sleep(LOOK_S)


async def commits(work: GroupWork) -> list[float]:
    """Commits per second; each connection has one commit in flight, for its own group."""
    groups = [f"commits-{number}" for number in range(work.count)]
    await prepared(work, "commits", 1, groups)
    clients = [await connected(work) for _ in groups]
    rates = []
    for _ in range(work.rounds):
        until = time.monotonic() + work.seconds
        counts = await asyncio.gather(*map(committing, clients, groups, [until] * work.count))
        rates.append(sum(counts) / work.seconds)
    return rates


async def committing(client: Connection, group: str, until: float) -> int:
    count = 0
    while time.monotonic() < until:
        one = PartitionToCommit(partition=0, committed_offset=count, committed_metadata="")
        request = OffsetCommitRequest(group_id=group, topics=(TopicToCommit(name="commits", partitions=(one,)),))
        answer = await client.call(request, 8)
        error = answer.topics[0].partitions[0].error_code
        assert error == 0, f"error {error}"
        count += 1
    return count


async def rebalances(work: GroupWork) -> list[float]:
    """Milliseconds from when one more member joins until all members have their share."""
    name = f"{work.kind}-{work.count}"
    setting = Setting(group=name, topic=name, partitions=2 * work.count, changed=asyncio.Event())
    await prepared(work, setting.topic, setting.partitions, [setting.group])
    begun = [await Running.begin(work, setting, f"{name}-{number}") for number in range(work.count - 1)]
    await until_shared([one.member for one in begun], setting)
    took = []
    for number in range(work.rounds):
        began = time.monotonic()
        late = await Running.begin(work, setting, f"{name}-late-{number}")
        await until_shared([one.member for one in (*begun, late)], setting)
        took.append(1000 * (time.monotonic() - began))
        await late.end()
        await until_shared([one.member for one in begun], setting)
    for one in begun:
        await one.end()
    return took


@dataclass(frozen=True, slots=True)
class Running:
    member: Member
    task: "asyncio.Task[None]"

    @classmethod
    async def begin(cls, work: GroupWork, setting: Setting, name: str) -> "Running":
        member = KINDS[work.kind](await connected(work), setting, name)
        return cls(member, asyncio.create_task(member.run()))

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task
        await self.member.leave()


async def until_shared(members: list[Member], setting: Setting) -> None:
    async with asyncio.timeout(SETTLE_MAX_S):
        while not is_shared(members, setting.partitions):
            setting.changed.clear()
            await setting.changed.wait()


def is_shared(members: list[Member], partitions: int) -> bool:
    shares = [one.share for one in members]
    same_round = all(one.round == members[0].round for one in members)
    return same_round and sum(shares) == partitions and max(shares) - min(shares) <= 1


async def main(work: GroupWork) -> list[float]:
    return await (commits(work) if work.kind == "commits" else rebalances(work))


if __name__ == "__main__":
    work_fields: dict[str, Any] = json.loads(sys.argv[1])
    print(json.dumps(asyncio.run(main(GroupWork(**work_fields)))))
