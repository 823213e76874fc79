"""Share partitions on their leaders, in a simulated world: locks and rests end in time, restarts forget nothing."""

import asyncio
from typing import Any

import pytest

from tailrace.broker.services.queues import Acknowledgement, ShareMember, TakeLimits, Taken
from tailrace.model.caller import Caller
from tailrace.model.faults import NotLeader
from tailrace.model.ids import TopicPartition
from tailrace.queues.share_partition import Acknowledge
from tailrace.queues.state import ShareKey
from tailrace.records.opened import batches, open_batch
from tailrace.records.record import Record
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tests.unit.broker.simulated import Brokers, simulated

GROUP = 32
ONE, OTHER = ShareMember("g", "one"), ShareMember("g", "other")
FEW: dict[str, Any] = {"share_coordinator_state_topic_num_partitions": 3, "offsets_topic_num_partitions": 3}


async def group_settings(brokers: Brokers, **settings: object) -> None:
    changes = tuple(
        ConfigChange(name=name.replace("_", "."), config_operation=0, value=str(value))
        for name, value in settings.items()
    )
    resource = ResourceToAlter(resource_type=GROUP, resource_name="g", configs=changes)
    answer = await brokers.call(1, IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert answer.resources[0].error_code == 0, answer.resources[0].error_message
    await brokers.until(lambda: all("g" in brokers[one].hosted.image.group_settings for one in brokers.ids))


async def make_queue(brokers: Brokers, *replicas: int, records: int = 1, group: str = "g") -> None:
    await brokers.make_topic("t", replicas)
    for number in range(records):
        brokers.append(replicas[0], "t", b"%d" % number)
    await brokers.until(lambda: brokers.replica(replicas[0], "t").high_watermark >= records)
    shares = brokers[replicas[0]].coordinators.share_partitions
    begins = shares.initialize(group, place(brokers, replicas[0]).topic_id, 0, 1, 0)
    await brokers.machine(replicas[0]).run(begins)


def place(brokers: Brokers, broker: int) -> TopicPartition:
    return TopicPartition(brokers[broker].hosted.image.topics["t"].id, 0)


async def take(brokers: Brokers, broker: int, member: ShareMember = ONE, wait_s: float = 0.0) -> dict[int, int]:
    """Deliveries by offset."""

    async def work() -> Any:
        limits = TakeLimits(records=100, max_bytes=1_000_000, max_wait_ms=int(wait_s * 1000), exact=False)
        wanted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        return await brokers[broker].services.queues.take(Caller(), member, [place(brokers, broker)], limits, wanted)

    found = (await brokers.machine(broker).run(work())).get(place(brokers, broker))
    if found is None:
        return {}
    assert isinstance(found, Taken), found
    return {at: one.deliveries for one in found.acquired for at in range(one.first, one.last + 1)}


async def say(brokers: Brokers, broker: int, kind: Acknowledge, *offsets: int, member: ShareMember = ONE) -> None:
    said = [Acknowledgement(one, one, [kind]) for one in offsets]

    async def work() -> None:
        await brokers[broker].services.queues.acknowledge(Caller(), member, place(brokers, broker), said)

    await brokers.machine(broker).run(work())


def records_of(brokers: Brokers, broker: int, topic: str) -> list[Record]:
    log = brokers.replica(broker, topic).log
    read = log.read(log.start, 1_000_000, log.end)
    assert read is not None
    return [one for batch, header in batches(read.data) if not header.is_control for one in open_batch(batch)]


@simulated(count=1, **FEW)
async def test_a_lock_that_is_not_renewed_ends(brokers: Brokers) -> None:
    await make_queue(brokers, 1, records=2)
    assert list((await take(brokers, 1)).values()) == [1, 1]
    first, second = (one.offset for one in records_of(brokers, 1, "t"))
    await brokers.elapse(20.0)
    await say(brokers, 1, Acknowledge.RENEW, second)
    assert await take(brokers, 1, OTHER, wait_s=15.0) == {first: 2}, "after 30 s, with no new record"
    await say(brokers, 1, Acknowledge.ACCEPT, second)
    await say(brokers, 1, Acknowledge.ACCEPT, first, member=OTHER)
    assert await take(brokers, 1, wait_s=60.0) == {}


@simulated(count=1, **FEW)
async def test_a_released_record_rests_and_then_comes_without_a_new_one(brokers: Brokers) -> None:
    await make_queue(brokers, 1)
    await group_settings(brokers, share_retry_backoff_ms=5_000, share_retry_backoff_max_ms=60_000)
    (offset,) = await take(brokers, 1)
    for count, rest_s in ((2, 5.0), (3, 10.0), (4, 20.0)):
        await say(brokers, 1, Acknowledge.RELEASE, offset)
        released = brokers.world.loop.time()
        assert await take(brokers, 1, wait_s=30.0) == {offset: count}
        assert rest_s <= brokers.world.loop.time() - released < rest_s + 0.1


@simulated(count=1, **FEW)
async def test_a_group_whose_offsets_were_set_back_reads_from_there(brokers: Brokers) -> None:
    await make_queue(brokers, 1, records=3)
    first, *others = await take(brokers, 1)
    await say(brokers, 1, Acknowledge.ACCEPT, first, *others)
    waiting = asyncio.ensure_future(take(brokers, 1, OTHER, wait_s=30.0))
    await brokers.elapse(1.0)
    shares = brokers[1].coordinators.share_partitions
    await brokers.machine(1).run(shares.initialize("g", place(brokers, 1).topic_id, 0, 2, others[0]))
    assert await waiting == dict.fromkeys(others, 1)


@simulated(**FEW)
async def test_what_was_said_holds_under_the_next_leader(brokers: Brokers) -> None:
    """Accepted records stay accepted, counts are kept, and a record rests until its time."""
    await make_queue(brokers, 1, 2, 3, records=4)
    await group_settings(brokers, share_retry_backoff_ms=20_000, share_retry_backoff_max_ms=20_000)
    accepted, released, rejected, held = await take(brokers, 1)
    await say(brokers, 1, Acknowledge.ACCEPT, accepted)
    await say(brokers, 1, Acknowledge.REJECT, rejected)
    await say(brokers, 1, Acknowledge.RELEASE, released)
    until = brokers.world.loop.time() + 20.0
    brokers.kill(1, power_loss=True)
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in brokers.ids))
    (there,) = (one for one in brokers.ids if brokers.replica(one, "t").leads)
    assert await take(brokers, there, OTHER, wait_s=10.0) == {held: 1}, "its delivery was not written yet"
    await say(brokers, there, Acknowledge.ACCEPT, held, member=OTHER)
    assert brokers.world.loop.time() < until - 1.0
    assert await take(brokers, there, OTHER, wait_s=30.0) == {released: 2}
    assert brokers.world.loop.time() >= until - 0.5, "the clocks of two brokers differ a little"


@simulated(**FEW)
async def test_a_late_accept_of_a_record_that_was_given_up_is_durable(brokers: Brokers) -> None:
    """The record is below the start, which nothing is stored about yet."""
    await make_queue(brokers, 1, 2, 3)
    await group_settings(brokers, share_delivery_count_limit=2)
    (offset,) = await take(brokers, 1)
    await say(brokers, 1, Acknowledge.RELEASE, offset)
    assert await take(brokers, 1) == {offset: 2}

    async def give_up() -> None:
        brokers[1].services.queues.leave(Caller(), ONE, [place(brokers, 1)])

    await asyncio.gather(brokers.machine(1).run(give_up()), say(brokers, 1, Acknowledge.ACCEPT, offset))
    brokers.kill(1, power_loss=True)
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in brokers.ids))
    (there,) = (one for one in brokers.ids if brokers.replica(one, "t").leads)
    assert await take(brokers, there, OTHER, wait_s=10.0) == {}


@simulated(**FEW)
async def test_a_leader_that_was_replaced_can_write_no_more(brokers: Brokers) -> None:
    await make_queue(brokers, 1, 2, 3)
    (offset,) = await take(brokers, 1)
    share = brokers[1].coordinators.share_partitions
    key = next(iter(share._shares))
    states = brokers[2].coordinators.share_states
    await brokers.machine(2).run(states.read(key, brokers.replica(1, "t").epoch + 1))
    with pytest.raises(NotLeader):
        await say(brokers, 1, Acknowledge.ACCEPT, offset)
    assert share.loaded(key) is None


@simulated(**FEW)
async def test_a_leader_without_a_majority_delivers_nothing(brokers: Brokers) -> None:
    """Another leader may have finished the records meanwhile."""
    await make_queue(brokers, 1, 2, 3, records=2)
    held, _ = await take(brokers, 1)
    for follower in (2, 3):
        brokers.kill(follower)
    await brokers.until(lambda: not brokers.replica(1, "t").hears_quorum())
    assert brokers.replica(1, "t").leads, "it does not know yet"
    with pytest.raises(NotLeader, match="lost contact with the majority"):
        await say(brokers, 1, Acknowledge.ACCEPT, held)
    with pytest.raises(AssertionError, match="lost contact with the majority"):
        await take(brokers, 1, OTHER)


@simulated(**FEW)
async def test_dead_letters_have_all_of_the_record_and_say_why(brokers: Brokers) -> None:
    await make_queue(brokers, 1, 2, 3, records=2)
    await brokers.make_topic("dead", (2, 3))
    await group_settings(brokers, errors_deadletterqueue_topic_name="dead", share_delivery_count_limit=2)
    rejected, exceeded = await take(brokers, 1)
    await say(brokers, 1, Acknowledge.REJECT, rejected)
    await say(brokers, 1, Acknowledge.RELEASE, exceeded)
    assert await take(brokers, 1) == {exceeded: 2}
    await say(brokers, 1, Acknowledge.RELEASE, exceeded)
    await brokers.until(lambda: len(records_of(brokers, 2, "dead")) == 2)
    letters = {int(dict(one.headers)["__dlq.errors.offset"] or b""): one for one in records_of(brokers, 2, "dead")}
    originals = {one.offset: one for one in records_of(brokers, 1, "t")}
    for offset, why, count in ((rejected, b"rejected", b"1"), (exceeded, b"exceeded", b"2")):
        letter, original = letters[offset], originals[offset]
        assert (letter.key, letter.value, letter.timestamp) == (original.key, original.value, original.timestamp)
        headers = dict(letter.headers)
        assert headers["tailrace.dlq.reason"] == why
        assert headers["__dlq.errors.delivery.count"] == count
        assert (headers["__dlq.errors.topic"], headers["__dlq.errors.partition"]) == (b"t", b"0")
        assert headers["__dlq.errors.group"] == b"g"
    assert await take(brokers, 1, wait_s=5.0) == {}


@simulated(**FEW)
async def test_without_its_topic_a_dead_letter_waits_and_is_not_archived(brokers: Brokers) -> None:
    await make_queue(brokers, 1, 2, 3, records=2)
    await group_settings(brokers, errors_deadletterqueue_topic_name="dead")
    rejected, held = await take(brokers, 1)
    await say(brokers, 1, Acknowledge.REJECT, rejected)
    await brokers.elapse(20.0)
    brokers.kill(1, power_loss=True)
    await brokers.until(lambda: any(brokers.replica(one, "t").leads for one in brokers.ids))
    (there,) = (one for one in brokers.ids if brokers.replica(one, "t").leads)
    assert await take(brokers, there, OTHER) == {held: 1}, "the new leader knows that the other is a dead letter"
    await brokers.start(1)
    await brokers.make_topic("dead", (2, 3))
    await brokers.until(lambda: len(records_of(brokers, 2, "dead")) == 1, within_seconds=60.0)


async def unfinished(brokers: Brokers, broker: int) -> int:
    """The records that the group has not finished, by what is stored."""
    topic_id, partition = place(brokers, broker)
    share_states = brokers[broker].coordinators.share_partitions._states
    state = await brokers.machine(broker).run(share_states.summary(ShareKey("g", topic_id, partition)))
    assert state is not None
    return brokers.replica(broker, "t").high_watermark - state.start - state.complete_count


@simulated(count=1, **FEW)
async def test_the_stored_start_is_right_after_writes_at_the_same_time(brokers: Brokers) -> None:
    await make_queue(brokers, 1, records=4)
    assert await take(brokers, 1) == {0: 1, 1: 1, 2: 1, 3: 1}
    await asyncio.gather(*(say(brokers, 1, Acknowledge.ACCEPT, one) for one in (0, 2, 1, 3)))
    await brokers.elapse(1.0)
    assert await unfinished(brokers, 1) == 0


@simulated(count=1, **FEW)
async def test_nothing_is_kept_of_groups_that_only_requests_name(brokers: Brokers) -> None:
    shares = brokers[1].coordinators.share_partitions
    assert len({shares.settings_of(f"group {number}") for number in range(100)}) == 1
    assert not shares._own_settings
    await group_settings(brokers, share_delivery_count_limit=7)
    assert shares.settings_of("g").delivery_count_limit == 7
