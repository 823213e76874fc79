"""Admin calls of our own client, with both of its drivers, against our broker and against Apache Kafka."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from tailrace.client.admin import (
    change_topic_settings,
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic,
    list_topics,
    topic_settings,
)
from tailrace.client.asyncio_driver import AsyncioDriver
from tailrace.client.blocking_driver import BlockingDriver
from tailrace.client.cluster import Cluster
from tailrace.client.driver import Driver, run_blocking
from tailrace.client.faults import Refused
from tailrace.client.group_admin import all_committed_offsets, delete_groups, describe_group, list_groups
from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, committed_offsets, offsets_at
from tailrace.model.addresses import parse_addresses
from tailrace.model.ids import NO_ID, PartitionName
from tailrace.ports import system_ports
from tailrace.wire.errors import Error
from tailrace.wire.messages.create_topics import NewTopic, NewTopicConfig
from tests.interop.drivers.own import LIMITS, OwnClient
from tests.interop.member import soon
from tests.interop.messages import Message

DEADLINE_S = 60.0
Work = Callable[[Cluster], Coroutine[Any, Any, None]]
Run = Callable[[Work], None]


@pytest.fixture(params=["asyncio", "blocking"])
def run(request: pytest.FixtureRequest, each_bootstrap: str) -> Run:
    """Runs calls of the client over one of its drivers."""

    def cluster_of(driver: Driver) -> Cluster:
        return Cluster(driver, parse_addresses(each_bootstrap), replace(LIMITS, unknown_s=1.0))

    async def on_a_loop(work: Work) -> None:
        ports = system_ports()
        cluster = cluster_of(AsyncioDriver(ports.net, ports.clock, ports.random))
        async with asyncio.timeout(DEADLINE_S):
            await work(cluster)
        cluster.close()

    def blocking(work: Work) -> None:
        cluster = cluster_of(BlockingDriver())
        run_blocking(work(cluster))
        cluster.close()

    return blocking if request.param == "blocking" else lambda work: asyncio.run(on_a_loop(work))


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


def new_topic(name: str, partitions: int = 1, replicas: int = 1, **settings: str) -> NewTopic:
    configs = tuple(NewTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items())
    return NewTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)


def error_in(refused: Refused | None) -> Error:
    return Error.NONE if refused is None else refused.error


async def error_of(call: Awaitable[object]) -> Error:
    with pytest.raises(Refused) as refused:
        await call
    return refused.value.error


async def partition_counts(cluster: Cluster) -> dict[str, int]:
    return {one.name or "": len(one.partitions) for one in await list_topics(cluster)}


async def eventually(cluster: Cluster, condition: Callable[[], Awaitable[bool]]) -> None:
    """A broker may tell a little later what the controller has done."""
    until = cluster.driver.now() + DEADLINE_S
    while not await condition():
        assert cluster.driver.now() < until
        await cluster.driver.sleep(0.01)


def test_topics_are_created_described_and_deleted(run: Run, name: str) -> None:
    async def work(cluster: Cluster) -> None:
        wanted = [new_topic(name, 3), new_topic(f"{name}-2")]
        assert await create_topics(cluster, wanted) == {name: None, f"{name}-2": None}

        async def both_are_listed() -> bool:
            listed = await partition_counts(cluster)
            return (listed.get(name), listed.get(f"{name}-2")) == (3, 1)

        async def is_gone() -> bool:
            return name not in await partition_counts(cluster)

        await eventually(cluster, both_are_listed)
        described = await describe_topic(cluster, name)
        assert sorted(one.partition for one in described.partitions) == [0, 1, 2]
        assert described.topic_id != NO_ID
        for one in described.partitions:
            assert one.leader_id >= 0
            assert one.replicas == one.isr == (one.leader_id,)
        assert await delete_topics(cluster, [name]) == {name: None}
        await eventually(cluster, is_gone)
        assert await error_of(describe_topic(cluster, name)) is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await create_topics(cluster, [new_topic(name, 2)]) == {name: None}
        again = await describe_topic(cluster, name)
        assert (len(again.partitions), again.topic_id != described.topic_id) == (2, True)

    run(work)


def test_each_topic_has_its_own_result(run: Run, name: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create_topics(cluster, [new_topic(name)])
        wanted = [
            new_topic(name),
            new_topic(f"{name}/"),
            new_topic(f"{name}-0", 0),
            new_topic(f"{name}-3", replicas=3),
            new_topic(f"{name}-s", retention_ms="soon"),
            new_topic(f"{name}-fine"),
        ]
        created = await create_topics(cluster, wanted)
        assert {one: error_in(refused) for one, refused in created.items()} == {
            name: Error.TOPIC_ALREADY_EXISTS,
            f"{name}/": Error.INVALID_TOPIC_EXCEPTION,
            f"{name}-0": Error.INVALID_PARTITIONS,
            f"{name}-3": Error.INVALID_REPLICATION_FACTOR,
            f"{name}-s": Error.INVALID_CONFIG,
            f"{name}-fine": Error.NONE,
        }
        assert f"cannot create topic {name}: Topic '{name}' already exists." == str(created[name])
        deleted = await delete_topics(cluster, [f"{name}-fine", f"{name}-none"])
        assert deleted[f"{name}-fine"] is None
        assert error_in(deleted[f"{name}-none"]) is Error.UNKNOWN_TOPIC_OR_PARTITION

    run(work)


def test_partitions_are_added(run: Run, name: str) -> None:
    async def work(cluster: Cluster) -> None:
        await create_topics(cluster, [new_topic(name, 2)])
        await create_partitions(cluster, name, 5)

        async def all_are_there() -> bool:
            return (await partition_counts(cluster)).get(name) == 5

        await eventually(cluster, all_are_there)
        last = PartitionName(name, 4)
        assert await offsets_at(cluster, {last: LATEST}) == {last: 0}
        assert await error_of(create_partitions(cluster, name, 3)) is Error.INVALID_PARTITIONS
        assert await error_of(create_partitions(cluster, f"{name}-none", 3)) is Error.UNKNOWN_TOPIC_OR_PARTITION

    run(work)


def test_settings_of_a_topic(run: Run, name: str) -> None:
    async def own_settings(cluster: Cluster) -> dict[str, str | None]:
        return {one.name: one.value for one in await topic_settings(cluster, name) if one.config_source == 1}

    async def work(cluster: Cluster) -> None:
        await create_topics(cluster, [new_topic(name, retention_ms="60000")])
        assert await own_settings(cluster) == {"retention.ms": "60000"}

        async def is_changed() -> bool:
            return await own_settings(cluster) == {"max.message.bytes": "2000"}

        await change_topic_settings(cluster, name, {"retention.ms": None, "max.message.bytes": "2000"})
        await eventually(cluster, is_changed)
        all_settings = {one.name: one.value for one in await topic_settings(cluster, name)}
        assert all_settings["cleanup.policy"] == "delete"
        assert await error_of(change_topic_settings(cluster, name, {"retention.ms": "soon"})) is Error.INVALID_CONFIG
        unknown = change_topic_settings(cluster, f"{name}-none", {"retention.ms": "60000"})
        assert await error_of(unknown) is Error.UNKNOWN_TOPIC_OR_PARTITION
        assert await error_of(topic_settings(cluster, f"{name}-none")) is Error.UNKNOWN_TOPIC_OR_PARTITION

    run(work)


def test_offsets_by_time(run: Run, name: str, each_bootstrap: str) -> None:
    partition = PartitionName(name, 0)

    async def work(cluster: Cluster) -> None:
        assert await offsets_at(cluster, {partition: EARLIEST}) == {partition: 0}
        assert await offsets_at(cluster, {partition: LATEST}) == {partition: 10}
        assert await offsets_at(cluster, {partition: 1_700_000_000_005}) == {partition: 5}
        assert await offsets_at(cluster, {partition: 1_700_000_000_010}) == {partition: -1}
        none = PartitionName(name, 7)
        assert await error_of(offsets_at(cluster, {none: LATEST})) is Error.UNKNOWN_TOPIC_OR_PARTITION

    client = OwnClient(each_bootstrap)
    client.create_topic(name)
    client.produce(name, [Message(value=b"v", timestamp_ms=1_700_000_000_000 + number) for number in range(10)])
    client.close()
    run(work)


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_group_with_a_member_and_after(run: Run, name: str, each_bootstrap: str, kind: str) -> None:
    group = f"g-{name}"
    client = OwnClient(each_bootstrap)
    client.create_topic(name)
    client.produce(name, [Message(value=b"v")] * 3)

    async def while_there(cluster: Cluster) -> None:
        listed = {one.group_id: (one.group_type, one.group_state) for one in await list_groups(cluster)}
        assert listed[group] == (kind, "Stable")
        described = await describe_group(cluster, group)
        assert described is not None
        assert (described.id, described.type, described.state) == (group, kind, "Stable")
        assert described.assignor == ("uniform" if kind == "consumer" else "range")
        assert described.coordinator in cluster.map.brokers
        (member,) = described.members
        assert (member.client_id, member.partitions) == ("tailrace", (PartitionName(name, 0),))
        assert "127.0.0.1" in member.host
        assert error_in((await delete_groups(cluster, [group]))[group]) is Error.NON_EMPTY_GROUP

    async def after(cluster: Cluster) -> None:
        described = await describe_group(cluster, group)
        assert described is not None
        assert (described.type, described.state, described.members) == (kind, "Empty", ())
        assert await all_committed_offsets(cluster, group) == {PartitionName(name, 0): 3}
        deleted = await delete_groups(cluster, [group, f"{group}-none"])
        assert deleted[group] is None
        assert error_in(deleted[f"{group}-none"]) is Error.GROUP_ID_NOT_FOUND
        assert await describe_group(cluster, group) is None
        assert group not in {one.group_id for one in await list_groups(cluster)}
        assert await all_committed_offsets(cluster, group) == {}

    with client.member(name, group, "consumer" if kind == "consumer" else "range") as member:
        soon(lambda: len(member.got) == 3)
        run(while_there)
        member.leave()
    client.close()
    run(after)


def test_offsets_of_a_group_without_members(run: Run, name: str) -> None:
    group, one, two, none = f"g-{name}", PartitionName(name, 0), PartitionName(name, 1), PartitionName(f"{name}-0", 0)

    async def work(cluster: Cluster) -> None:
        await create_topics(cluster, [new_topic(name, 2)])
        assert await committed_offsets(cluster, group, [one]) == {}
        await commit_offsets(cluster, group, {one: 7}, note="why")
        assert await committed_offsets(cluster, group, [one, two]) == {one: 7}
        await commit_offsets(cluster, group, {one: 5, two: 1})
        assert await all_committed_offsets(cluster, group) == {one: 5, two: 1}
        assert await error_of(commit_offsets(cluster, group, {none: 1})) is Error.UNKNOWN_TOPIC_OR_PARTITION

    run(work)
