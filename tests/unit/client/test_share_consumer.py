"""`ShareConsumer` against brokers that follow a script: which requests it sends, in which session, to whom."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tailrace.client.cluster import Limits
from tailrace.client.faults import ClientError, NotAcknowledged, Unsupported
from tailrace.client.share_consumer import ShareConsumer, ShareOptions
from tailrace.client.shares.message import Message, Outcome
from tailrace.records.build import build_batch
from tailrace.records.record import NewRecord
from tailrace.testing.simulation import World
from tailrace.wire.errors import Error
from tailrace.wire.messages import MESSAGES
from tailrace.wire.messages.api_versions import ApiRange, ApiVersionsResponse
from tailrace.wire.messages.consumer_group_heartbeat import Assignment, OwnedTopic
from tailrace.wire.messages.find_coordinator import FindCoordinatorResponse
from tailrace.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from tailrace.wire.messages.metadata import BrokerMetadata, MetadataResponse, PartitionMetadata, TopicMetadata
from tailrace.wire.messages.share_acknowledge import (
    PartitionAcknowledged,
    ShareAcknowledgeResponse,
    TopicAcknowledged,
)
from tailrace.wire.messages.share_fetch import (
    AcquiredRecords,
    PartitionShareFetched,
    ShareFetchResponse,
    TopicShareFetched,
)
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from tests.unit.client.misbehaving import BEHAVIOURS, PORT, TOPIC_ID, Misbehaving
from tests.unit.client.simulated_client import SimulatedClient

LIMITS = Limits(request_s=2.0, retry_s=5.0)
LOCK_MS = 30_000
EXPLICIT = ShareOptions(acknowledges="explicit", acquire_mode="record_limit")
SHARE_APIS = (76, 78, 79)


class Scripted(Misbehaving):
    """Two brokers; `script` has the answers to ShareFetch and ShareAcknowledge, in order, then come empty ones."""

    def __init__(self) -> None:
        super().__init__(seed=1)
        self.weights = [1.0] + [0.0] * (len(BEHAVIOURS) - 1)
        self.version = 2
        self.script: deque[Any] = deque()
        self.seen: list[tuple[int, Any]] = []  # the broker's number, and the request
        self.wait_s = 0.0

    def answer(self, key: int, request: Any, number: int, *, is_error: bool) -> Any:
        self.wait_s = 0.0
        match MESSAGES[key].name:
            case "ApiVersions":
                ranges = (
                    (one, self.version if one in SHARE_APIS else pair.versions.last) for one, pair in MESSAGES.items()
                )
                offered = tuple(ApiRange(api_key=one, min_version=0, max_version=last) for one, last in ranges)
                return ApiVersionsResponse(api_keys=offered)
            case "Metadata":
                return self._metadata(0)
            case "FindCoordinator":
                return FindCoordinatorResponse(node_id=1, host="h1", port=PORT)
            case "ShareGroupHeartbeat":
                assigned = Assignment(topic_partitions=(OwnedTopic(topic_id=TOPIC_ID, partitions=(0,)),))
                return ShareGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=500, assignment=assigned)
        self.seen.append((number, request))
        if self.script:
            return self.script.popleft()
        if MESSAGES[key].name == "ShareAcknowledge":
            return acknowledged()
        self.wait_s = request.max_wait_ms / 1000
        return fetched()

    def delay_s(self, answer: Any) -> float:
        return self.wait_s

    def _metadata(self, code: int) -> MetadataResponse:
        part = PartitionMetadata(partition=0, leader_id=1, leader_epoch=1, replicas=(1,), isr=(1,))
        return MetadataResponse(
            brokers=(BrokerMetadata(node_id=1, host="h1", port=PORT),),
            topics=(TopicMetadata(name="t", topic_id=TOPIC_ID, partitions=(part,)),),
        )

    def sent(self, name: str) -> list[Any]:
        return [one for _, one in self.seen if type(one).__name__ == f"{name}Request"]


def fetched(*offsets: int, deliveries: int = 1, error: Error = Error.NONE, **more: Any) -> ShareFetchResponse:
    records = b"".join(bytes(build_batch([NewRecord(b"%d" % one)], base_offset=one)) for one in offsets)
    ranges = tuple(AcquiredRecords(first_offset=one, last_offset=one, delivery_count=deliveries) for one in offsets)
    part = PartitionShareFetched(partition=0, error_code=error, records=records, acquired_records=ranges, **more)
    topics = (TopicShareFetched(topic_id=TOPIC_ID, partitions=(part,)),)
    endpoints = (NodeEndpoint(node_id=2, host="h2", port=PORT),)
    return ShareFetchResponse(acquisition_lock_timeout_ms=LOCK_MS, topics=topics, node_endpoints=endpoints)


def acknowledged(error: Error = Error.NONE) -> ShareAcknowledgeResponse:
    part = PartitionAcknowledged(partition=0, error_code=error)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=LOCK_MS, topics=(TopicAcknowledged(topic_id=TOPIC_ID, partitions=(part,)),)
    )


def said(request: Any) -> list[tuple[int, int, tuple[int, ...]]]:
    return [
        (one.first_offset, one.last_offset, tuple(one.acknowledge_types))
        for topic in request.topics
        for part in topic.partitions
        for one in part.acknowledgement_batches
    ]


def play(
    work: Callable[[ShareConsumer, Scripted], Awaitable[None]], options: ShareOptions = EXPLICIT, **more: Any
) -> None:
    async def run(world: World) -> None:
        brokers = Scripted()
        brokers.version = more.get("version", 2)
        for number in (1, 2):
            await brokers.listen(world.machine(f"h{number}"), number)
        client = SimulatedClient(world, "h1", LIMITS)

        async def consume() -> None:
            try:
                async with asyncio.timeout(60), ShareConsumer(client.cluster, "g", ["t"], options) as consumer:
                    await work(consumer, brokers)
            finally:
                client.cluster.close()

        await client.run(consume())

    with World(1) as world:
        world.run(run(world))


async def one(consumer: ShareConsumer) -> Message:
    (message,) = await consumer.poll(1, 10.0)
    return message


def test_a_broker_of_version_1_has_neither_record_limits_nor_renewals() -> None:
    async def limited(consumer: ShareConsumer, brokers: Scripted) -> None:
        with pytest.raises(Unsupported, match="h1:9092 cannot limit the number of records"):
            await consumer.poll(1, 10.0)

    async def renewed(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0))
        message = await one(consumer)
        with pytest.raises(Unsupported, match="h1:9092 cannot renew locks"):
            await consumer.renew([message])
        await consumer.settle(message)

    play(limited, version=1)
    play(renewed, ShareOptions(acknowledges="explicit"), version=1)


def test_acknowledgements_ride_on_the_next_fetch() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script += [fetched(0), fetched(1)]
        await one(consumer)
        await one(consumer)
        first, second = brokers.sent("ShareFetch")
        assert (first.share_session_epoch, said(first)) == (0, [])
        assert (second.share_session_epoch, said(second)) == (1, [(0, 0, (1,))])
        assert brokers.sent("ShareAcknowledge") == []

    play(work, ShareOptions())


def test_acknowledgements_go_alone_when_nobody_polls() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0, 1))
        first, second = await consumer.poll(2, 10.0)
        consumer.acknowledge(first, Outcome.RELEASE)
        await consumer.commit()
        await consumer.settle(second, Outcome.REJECT)
        assert [said(request) for request in brokers.sent("ShareAcknowledge")] == [[(0, 0, (2,))], [(1, 1, (3,))]]
        assert [request.share_session_epoch for request in brokers.sent("ShareAcknowledge")] == [1, 2]
        assert len(brokers.sent("ShareFetch")) == 1

    play(work)


def test_a_fetch_asks_for_what_polls_wait_for_and_is_held_shortly_with_messages_in_hand() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0, 1))
        await consumer.poll(2, 10.0)
        await asyncio.gather(*(consumer.poll(3, 0.05) for _ in range(4)))
        first, second = brokers.sent("ShareFetch")[:2]
        assert (first.max_records, first.max_wait_ms, first.share_acquire_mode) == (2, 500, 1)
        assert (second.max_records, second.max_wait_ms) == (12, 100)

    play(work)


@pytest.mark.parametrize("error", [Error.SHARE_SESSION_NOT_FOUND, Error.INVALID_SHARE_SESSION_EPOCH])
def test_a_lost_session_is_opened_anew_and_acknowledgements_are_sent_again(error: Error) -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script += [fetched(0), ShareAcknowledgeResponse(error_code=error)]
        await consumer.settle(await one(consumer))
        _, refused, opening, again = (request for _, request in brokers.seen)
        assert (refused.share_session_epoch, said(refused)) == (1, [(0, 0, (1,))])
        assert (opening.share_session_epoch, opening.topics) == (0, ())
        assert (again.share_session_epoch, said(again)) == (1, [(0, 0, (1,))])

    play(work)


def test_the_new_leader_is_asked_at_once_and_old_locks_are_lost() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        moved = fetched(
            error=Error.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
        )
        brokers.script += [fetched(0), moved, fetched(0)]
        old = await one(consumer)
        new = await one(consumer)
        assert [number for number, _ in brokers.seen] == [1, 1, 2]
        assert old.is_lost
        with pytest.raises(NotAcknowledged, match="its lock has ended"):
            await consumer.settle(old)
        await consumer.settle(new)

    play(work)


@pytest.mark.parametrize(("deliveries", "wanted"), [(1, 3), (2, 1)])
def test_nothing_is_fetched_ahead_with_a_message_that_was_delivered_before(deliveries: int, wanted: int) -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0, deliveries=deliveries))
        await one(consumer)
        await consumer.poll(1, 0.3)
        asked = [request.max_records for request in brokers.sent("ShareFetch")]
        assert asked[:2] == [4, wanted]

    play(work, ShareOptions(acknowledges="explicit", acquire_mode="record_limit", prefetch=3))


def test_a_broker_that_leads_no_partition_any_more_gets_no_share_of_the_demand() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        moved = fetched(
            error=Error.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=7)
        )
        brokers.script += [moved, fetched(0), fetched(1), fetched(2)]
        assert [(await one(consumer)).offset for _ in range(3)] == [0, 1, 2]
        assert [number for number, _ in brokers.seen] == [1, 2, 2, 2]

    play(work)


def test_nothing_can_be_acknowledged_to_a_broker_that_is_gone() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script += [fetched(0, 1)]
        messages = await consumer.poll(2, 10.0)
        brokers.weights = [float(one == "closes") for one in BEHAVIOURS]
        for message in messages:
            with pytest.raises(NotAcknowledged, match=f"cannot accept offset {message.offset} of t-0"):
                await consumer.settle(message)

    play(work)


def test_a_refused_acknowledgement_tells_whoever_waits() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script += [fetched(0), acknowledged(Error.INVALID_RECORD_STATE)]
        message = await one(consumer)
        with pytest.raises(NotAcknowledged, match="cannot accept offset 0 of t-0: INVALID_RECORD_STATE"):
            await consumer.settle(message)

    play(work)


def test_locks_are_renewed_at_a_third_of_their_time() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0))
        message = await one(consumer)
        until = message.locked_until
        await asyncio.sleep(11)
        (renewal,) = brokers.sent("ShareAcknowledge")
        assert (renewal.is_renew_ack, said(renewal)) == (True, [(0, 0, (4,))])
        assert message.locked_until == pytest.approx(until + LOCK_MS / 3000, abs=0.5)

    play(work, ShareOptions(acknowledges="explicit", renews_locks=True))


def test_what_came_too_late_for_a_poll_is_released_at_a_third_of_its_lock() -> None:
    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        await consumer.join(10.0)
        brokers.script.append(fetched(0))
        giving_up = asyncio.create_task(consumer.poll(1, 10.0))
        await asyncio.sleep(0)
        giving_up.cancel()
        await asyncio.sleep(11)
        (release,) = brokers.sent("ShareAcknowledge")
        assert said(release) == [(0, 0, (2,))]

    play(work, ShareOptions(acknowledges="explicit", acquire_mode="record_limit", renews_locks=True))


def test_closing_says_what_was_decided_and_ends_the_session() -> None:
    seen: list[Any] = []

    async def work(consumer: ShareConsumer, brokers: Scripted) -> None:
        brokers.script.append(fetched(0, 1))
        first, _ = await consumer.poll(2, 10.0)
        consumer.acknowledge(first)
        await consumer.close()
        seen.extend(brokers.sent("ShareAcknowledge"))
        with pytest.raises(ClientError, match="closed"):
            await consumer.poll()

    play(work)
    assert [(request.share_session_epoch, said(request)) for request in seen] == [(1, [(0, 0, (1,))]), (-1, [])]
