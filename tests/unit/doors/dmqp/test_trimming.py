"""Messages are deleted when every group is past them and they are old enough, and not before."""

from tailrace.client.offsets import EARLIEST, LATEST, commit_offsets, offsets_at
from tailrace.doors.dmqp.topics import Topics
from tailrace.doors.dmqp.trimming import Trimming
from tailrace.model.ids import PartitionName
from tests.unit.doors.dmqp.served import Client, Served, with_door

SHARD = PartitionName("dmqp-0", 0)
HOUR_MS = 3_600_000


async def pushed_and_popped(served: Served, pushed: int, popped: int, topic_id: int = 0) -> Client:
    client = await served.client()
    for number in range(pushed):
        await client.push(b"%d" % number, topic_id)
    for number in range(popped):
        assert await client.pop(topic_id) == b"%d" % number
    return client


async def trim(served: Served, delay_ms: int = 0, table: dict[int, str] | None = None) -> int:
    """Trim; the first offset of the shard after that."""
    await Trimming(served.cluster, Topics(served.upstream, 1, table or {}), delay_ms).trim()
    return (await offsets_at(served.cluster, {SHARD: EARLIEST}))[SHARD]


@with_door(dmqp_shards=1)
async def test_what_was_popped_is_deleted_and_the_rest_comes_out(served: Served) -> None:
    client = await pushed_and_popped(served, 10, 4)
    assert await trim(served) == 4
    assert [await client.pop() for _ in range(7)] == [b"4", b"5", b"6", b"7", b"8", b"9", None]
    assert await trim(served) == 10
    assert (await offsets_at(served.cluster, {SHARD: LATEST}))[SHARD] == 10


@with_door(dmqp_shards=1)
async def test_a_topic_from_which_nothing_was_popped_is_left_alone(served: Served) -> None:
    await pushed_and_popped(served, 5, 0)
    assert await trim(served) == 0
    await commit_offsets(served.cluster, "archive", {SHARD: 5})
    assert await trim(served) == 0


@with_door(dmqp_shards=1)
async def test_no_message_is_deleted_before_its_time(served: Served) -> None:
    await pushed_and_popped(served, 5, 5)
    assert await trim(served, HOUR_MS) == 0
    assert await trim(served, 0) == 5


@with_door(dmqp_shards=1)
async def test_every_group_with_a_position_counts(served: Served) -> None:
    client = await pushed_and_popped(served, 8, 8)
    await commit_offsets(served.cluster, "archive", {SHARD: 3})
    await commit_offsets(served.cluster, "elsewhere", {SHARD: 6})
    assert await trim(served) == 3
    await commit_offsets(served.cluster, "archive", {SHARD: 7})
    assert await trim(served) == 6
    other = served.upstream.takers.of("another share group", "dmqp-0")
    message = await other.take()
    assert message is not None
    await other.accept(message)
    await commit_offsets(served.cluster, "elsewhere", {SHARD: 8})
    assert await trim(served) == 7
    assert await client.pop() is None


@with_door(dmqp_shards=1)
async def test_a_topic_that_the_table_names_is_never_trimmed(served: Served) -> None:
    await pushed_and_popped(served, 3, 3)
    assert await trim(served, table={7: "dmqp-0", 0: "other"}) == 0


@with_door()
async def test_without_topics_there_is_nothing_to_do(served: Served) -> None:
    assert await Trimming(served.cluster, Topics(served.upstream, 3, {}), 0).trim() == {}
