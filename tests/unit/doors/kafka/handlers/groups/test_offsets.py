"""OffsetCommit, OffsetFetch and OffsetDelete, in every version."""

import asyncio
from pathlib import Path
from typing import Any

from tailrace.model.ids import NO_ID, Id
from tailrace.wire.errors import Error
from tailrace.wire.messages.delete_topics import DeleteTopicsRequest, TopicToDelete
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.offset_commit import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from tailrace.wire.messages.offset_delete import OffsetDeleteRequest, PartitionToForget, TopicToForget
from tailrace.wire.messages.offset_fetch import GroupTopicWanted, GroupWanted, OffsetFetchRequest, TopicWanted
from tests.unit.doors.kafka.grouped import SETTINGS, members
from tests.unit.doors.kafka.served import Served, serving, versions, with_broker


async def commit(served: Served, offset: int, version: int = 9, topic_id: bytes = NO_ID, **more: Any) -> int:
    """Commit for partition 0 of topic t; the error code."""
    partition = PartitionToCommit(
        partition=more.pop("partition", 0), committed_offset=offset, committed_metadata=more.pop("note", "n")
    )
    topic = TopicToCommit(name=more.pop("topic", "t"), topic_id=Id(topic_id), partitions=(partition,))
    request = OffsetCommitRequest(group_id=more.pop("group", "g"), topics=(topic,), **more)
    answer = await served.call(request, version)
    error: int = answer.topics[0].partitions[0].error_code
    return error


async def fetched(served: Served, version: int = 9, topic_id: bytes = NO_ID, name: str = "t") -> Any:
    """Partition 0 of a topic, as fetched."""
    if version < 8:
        one = TopicWanted(name=name, partition_indexes=(0,))
        answer = await served.call(OffsetFetchRequest(group_id="g", topics=(one,)), version)
        return answer.topics[0].partitions[0]
    wanted = GroupTopicWanted(name=name, topic_id=Id(topic_id), partition_indexes=(0,))
    answer = await served.call(OffsetFetchRequest(groups=(GroupWanted(group_id="g", topics=(wanted,)),)), version)
    return answer.groups[0].topics[0].partitions[0]


async def find(served: Served) -> None:
    assert (await served.call(FindCoordinatorRequest(coordinator_keys=("g",)), 6)).coordinators[0].error_code == 0


@with_broker(**SETTINGS)
async def test_every_version_commits_and_fetches(served: Served) -> None:
    topic_id = await served.make_topic("t")
    await find(served)
    assert (await fetched(served)).committed_offset == -1
    for version in versions(8):
        assert await commit(served, version, version, topic_id if version >= 10 else NO_ID) == 0
        assert (await fetched(served)).committed_offset == version
    for version in versions(9):
        one = await fetched(served, version, topic_id if version >= 10 else NO_ID)
        assert (one.committed_offset, one.metadata, one.error_code) == (10, "n", 0)
        assert one.committed_leader_epoch == -1


@with_broker(**SETTINGS)
async def test_an_offset_that_is_to_be_kept_for_longer_than_time_lasts_is_kept(served: Served) -> None:
    await served.make_topic("t")
    await find(served)
    for version in (2, 3, 4):
        for kept_ms in (2**63 - 1, -(2**63)):
            assert await commit(served, version, version, retention_time_ms=kept_ms) == 0
            assert (await fetched(served)).committed_offset == version


@with_broker(**SETTINGS)
async def test_all_offsets_of_several_groups(served: Served) -> None:
    topic_id = await served.make_topic("t", 3)
    await find(served)
    for partition in (0, 2):
        assert await commit(served, 5, partition=partition) == 0
    groups = (GroupWanted(group_id="g", topics=None), GroupWanted(group_id="nobody", topics=None))
    for version in (8, 9, 10):
        one, other = (await served.call(OffsetFetchRequest(groups=groups), version)).groups
        (topic,) = one.topics
        assert [two.partition for two in topic.partitions] == [0, 2]
        assert topic.topic_id == (topic_id if version >= 10 else NO_ID)
        assert (other.error_code, other.topics) == (0, ())
    single = await served.call(OffsetFetchRequest(group_id="g", topics=None), 2)
    assert [two.partition for two in single.topics[0].partitions] == [0, 2]


@with_broker(**SETTINGS, offset_metadata_max_bytes=4)
async def test_what_cannot_be_committed(served: Served) -> None:
    await served.make_topic("t")
    await find(served)
    assert await commit(served, 1, topic="u") == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(served, 1, partition=1) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert await commit(served, 1, 10, b"x" * 16) == Error.UNKNOWN_TOPIC_ID
    assert (await fetched(served, 10, b"x" * 16)).error_code == Error.UNKNOWN_TOPIC_ID
    assert await commit(served, 1, note="12345") == Error.OFFSET_METADATA_TOO_LARGE
    assert await commit(served, 1, note="🦦🦦1") == Error.OFFSET_METADATA_TOO_LARGE
    generation: dict[str, Any] = {"generation_id_or_member_epoch": 3, "member_id": "m"}
    assert await commit(served, 1, **generation) == Error.GROUP_ID_NOT_FOUND
    assert await commit(served, 1, 8, **generation) == Error.ILLEGAL_GENERATION
    assert (await fetched(served)).committed_offset == -1
    for note in ("1234", "ääää", "🦦🦦"):  # Kafka counts as Java does, a character outside the basic plane twice
        assert await commit(served, 1, note=note) == 0
        assert (await fetched(served)).metadata == note
    assert await commit(served, 1, note=None) == 0
    assert (await fetched(served)).metadata == ""


@with_broker(**SETTINGS)
async def test_only_members_commit_while_there_are_some(served: Served) -> None:
    await served.make_topic("t")
    async with members(served, 1) as (one,):
        await one.begin()
        assert await commit(served, 1) == Error.UNKNOWN_MEMBER_ID
        told: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": one.id}
        assert await commit(served, 1, **told) == 0
        assert await commit(served, 1, **told | {"generation_id_or_member_epoch": 2}) == Error.ILLEGAL_GENERATION
        await one.leave()
        assert await commit(served, 2) == 0
        assert (await fetched(served)).committed_offset == 2


async def forget(served: Served, group: str, topic: str) -> Any:
    one = TopicToForget(name=topic, partitions=(PartitionToForget(partition=0),))
    return await served.call(OffsetDeleteRequest(group_id=group, topics=(one,)), 0)


@with_broker(**SETTINGS)
async def test_offsets_are_forgotten_on_request(served: Served) -> None:
    for topic in ("t", "u"):
        await served.make_topic(topic)
    async with members(served, 1) as (one,):
        for topic in ("t", "u"):
            assert await commit(served, 5, topic=topic) == 0
        await one.begin("t")
        read = await forget(served, "g", "t")
        assert read.topics[0].partitions[0].error_code == Error.GROUP_SUBSCRIBED_TO_TOPIC
        assert (await forget(served, "g", "u")).topics[0].partitions[0].error_code == 0
        assert (await fetched(served, name="u")).committed_offset == -1
        unknown = await forget(served, "g", "never")
        assert unknown.topics[0].partitions[0].error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
        assert (await forget(served, "h", "t")).error_code == Error.GROUP_ID_NOT_FOUND
        assert (await fetched(served)).committed_offset == 5


@with_broker(**SETTINGS)
async def test_a_topic_made_again_is_read_from_its_beginning(served: Served) -> None:
    await served.make_topic("t")
    await find(served)
    assert await commit(served, 5) == 0
    gone = DeleteTopicsRequest(topics=(TopicToDelete(name="t"),), timeout_ms=5000)
    assert (await served.call(gone, 6)).topics[0].error_code == 0
    await served.make_topic("t")
    coordinator = served.node.coordinators.groups.local("g")
    assert await coordinator.ask(lambda machine: list(machine.committed("g"))) == []
    assert (await fetched(served)).committed_offset == -1


def test_offsets_and_groups_survive_a_restart(tmp_path: Path) -> None:
    async def before() -> str:
        async with serving(tmp_path, **SETTINGS, fsync="always") as served:
            await served.make_topic("t")
            async with members(served, 1) as (one,):
                await one.begin()
                told: dict[str, Any] = {"generation_id_or_member_epoch": 1, "member_id": one.id}
                assert await commit(served, 7, **told) == 0
                return one.id

    async def after(member_id: str) -> None:
        async with serving(tmp_path, **SETTINGS, fsync="always") as served, members(served, 1) as (one,):
            one.id, one.generation = member_id, 1
            while (error := await one.heartbeat()) == Error.COORDINATOR_LOAD_IN_PROGRESS:  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert error == 0
            assert (await one.sync()).assignment == b"all"
            assert (await fetched(served)).committed_offset == 7

    asyncio.run(after(asyncio.run(before())))
