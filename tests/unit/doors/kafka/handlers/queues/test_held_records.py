"""What a member of a share group holds, and what becomes of it with the member's session (KIP-932)."""

import asyncio
from typing import Final

from tailrace.model.ids import Id
from tailrace.wire.errors import Error
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch, PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.incremental_alter_configs import (
    ConfigChange,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from tailrace.wire.messages.share_fetch import (
    ForgottenTopic,
    PartitionShareFetched,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.unit.doors.kafka.served import Served, with_broker

GROUP: Final = "g"
GROUP_RESOURCE: Final = 32
RELEASE: Final = 2
WAIT_MS: Final = 2_000  # much shorter than a lock


async def begin(served: Served) -> bytes:
    """A topic with a record that the group is about to read; the topic's id."""
    earliest = ConfigChange(name="share.auto.offset.reset", config_operation=0, value="earliest")
    group = ResourceToAlter(resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=(earliest,))
    await served.call(IncrementalAlterConfigsRequest(resources=(group,)), 1)
    topic_id = await served.make_topic("t")
    await served.produce("t", 0)
    epoch = 0
    async with asyncio.timeout(10):
        finding = FindCoordinatorRequest(coordinator_keys=(GROUP,))
        while (await served.call(finding, 4)).coordinators[0].error_code:  # noqa: ASYNC110
            await asyncio.sleep(0)
        while True:
            joining = ShareGroupHeartbeatRequest(
                group_id=GROUP, member_id="ada", member_epoch=epoch, subscribed_topic_names=("t",)
            )
            answer = await served.call(joining, 1)
            epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                return topic_id


async def fetch(
    served: Served,
    member: str,
    epoch: int,
    *topics: TopicToAcknowledge,
    max_wait_ms: int = WAIT_MS,
    forgotten: tuple[ForgottenTopic, ...] = (),
) -> PartitionShareFetched | None:
    """The partition in the response; None: there is nothing to say about it."""
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id=member,
        share_session_epoch=epoch,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=topics,
        forgotten_topics=forgotten,
    )
    answer: ShareFetchResponse = await served.call(request, 2)
    assert answer.error_code == 0, answer.error_message
    return answer.topics[0].partitions[0] if answer.topics else None


def partition(topic_id: bytes, *acknowledged: AcknowledgementBatch) -> TopicToAcknowledge:
    one = PartitionToAcknowledge(partition=0, acknowledgement_batches=acknowledged)
    return TopicToAcknowledge(topic_id=Id(topic_id), partitions=(one,))


def deliveries(found: PartitionShareFetched | None) -> list[tuple[int, int]]:
    """First offset and delivery count of what was acquired."""
    return [] if found is None else [(one.first_offset, one.delivery_count) for one in found.acquired_records]


@with_broker()
async def test_a_fetch_does_not_acknowledge_what_it_delivers(served: Served) -> None:
    """A member that lost a record may release it in the request that delivers it again: that is refused."""
    topic_id = await begin(served)
    assert deliveries(await fetch(served, "ada", 0, partition(topic_id))) == [(0, 1)]
    await fetch(served, "ada", -1)
    await fetch(served, "ada", 0, max_wait_ms=0)
    late = AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(RELEASE,))
    found = await fetch(served, "ada", 1, partition(topic_id, late))
    assert found is not None
    assert found.acknowledge_error_code == Error.INVALID_RECORD_STATE
    assert deliveries(found) == [(0, 2)]
    assert deliveries(await fetch(served, "bob", 0, partition(topic_id), max_wait_ms=0)) == []


@with_broker()
async def test_records_of_a_forgotten_partition_are_released_with_the_session(served: Served) -> None:
    topic_id = await begin(served)
    assert deliveries(await fetch(served, "ada", 0, partition(topic_id))) == [(0, 1)]
    forgotten = (ForgottenTopic(topic_id=Id(topic_id), partitions=(0,)),)
    await fetch(served, "ada", 1, max_wait_ms=0, forgotten=forgotten)
    assert deliveries(await fetch(served, "bob", 0, partition(topic_id), max_wait_ms=0)) == []
    await fetch(served, "ada", -1)
    assert deliveries(await fetch(served, "bob", 1)) == [(0, 2)]


@with_broker()
async def test_a_session_that_is_opened_anew_fetches_only_what_it_names(served: Served) -> None:
    topic_id = await begin(served)
    await fetch(served, "ada", 0, partition(topic_id))
    await served.produce("t", 0)
    assert await fetch(served, "ada", 0, max_wait_ms=0) is None
