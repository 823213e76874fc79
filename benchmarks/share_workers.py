"""Workers of a share group, each with connections of its own: take messages, accept them, and count."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Final, Protocol, Self

from benchmarks.connection import Refused
from tailrace.client.cluster import Cluster
from tailrace.client.connection import Connection
from tailrace.client.queue import Queue, QueueOptions
from tailrace.client.share_consumer import ShareConsumer
from tailrace.model.ids import Id
from tailrace.ports import system_ports
from tailrace.wire.messages.acknowledgements import AcknowledgementBatch, PartitionToAcknowledge, TopicToAcknowledge
from tailrace.wire.messages.find_coordinator import FindCoordinatorRequest
from tailrace.wire.messages.share_fetch import AcquiredRecords, ShareFetchRequest, ShareFetchResponse
from tailrace.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

BATCH_RECORDS: Final = 500
MAX_WAIT_MS: Final = 500
EXACT: Final = 1  # ShareAcquireMode: not more than MaxRecords
ACCEPT: Final = (1,)
FIND_VERSION: Final = 2
HEARTBEAT_VERSION: Final = 1
FETCH_VERSION: Final = 2
RETRY_PAUSE_SECONDS: Final = 0.05


class Tally:
    """The messages that all workers have accepted."""

    def __init__(self, wanted: int) -> None:
        self.accepted = 0
        self.enough = asyncio.Event()
        self._wanted = wanted

    def add(self, accepted: int) -> None:
        self.accepted += accepted
        if self.accepted >= self._wanted:
            self.enough.set()


class Worker(Protocol):
    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def join(self) -> None:
        """Become a member of the group, with its partition assigned."""

    async def run(self, tally: Tally) -> None:
        """Take and accept until cancelled."""


class ClientWorker:
    """Batches through our client; a poll accepts what the last one returned."""

    def __init__(self, cluster: Cluster, topic: str, group: str) -> None:
        self._cluster = cluster
        self._consumer = ShareConsumer(cluster, group, [topic])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.close()
        self._cluster.close()

    async def join(self) -> None:
        await self._consumer.join()

    async def run(self, tally: Tally) -> None:
        before = 0
        while True:
            messages = await self._consumer.poll(BATCH_RECORDS)
            tally.add(before)
            before = len(messages)


class QueueWorker:
    """One message at a time through our client's queue."""

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._queue = Queue.connect(bootstrap, topic, QueueOptions(group=group))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._queue.close()

    async def join(self) -> None:
        await self._queue.join()

    async def run(self, tally: Tally) -> None:
        while True:
            async with self._queue.take():
                pass
            tally.add(1)


class WireWorker:
    """One ShareFetch after the other, each with the acknowledgements of the one before. The records are not opened."""

    def __init__(self, host: str, port: int, topic: str, group: str, *, one_by_one: bool) -> None:
        self._address = host, port
        self._topic = topic
        self._group = group
        self._limits: dict[str, Any] = {"max_records": 1, "batch_size": 1, "share_acquire_mode": EXACT}
        if not one_by_one:
            self._limits = {"max_records": BATCH_RECORDS, "batch_size": BATCH_RECORDS}
        self._member = str(uuid.uuid4())
        self._topic_id = Id(bytes(16))

    async def __aenter__(self) -> Self:
        self._client = await Connection.connect(system_ports().net, *self._address, "bench")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._client.close()

    async def join(self) -> None:
        epoch, topics = 0, (self._topic,)
        while True:
            await self._client.call(FindCoordinatorRequest(key=self._group), FIND_VERSION)  # creates its topic
            request = ShareGroupHeartbeatRequest(
                group_id=self._group, member_id=self._member, member_epoch=epoch, subscribed_topic_names=topics
            )
            answer = await self._client.call(request, HEARTBEAT_VERSION)
            if not answer.error_code:
                epoch = answer.member_epoch
            if answer.assignment is not None and answer.assignment.topic_partitions:
                self._topic_id = answer.assignment.topic_partitions[0].topic_id
                return
            await asyncio.sleep(RETRY_PAUSE_SECONDS)

    async def run(self, tally: Tally) -> None:
        epoch = 0
        before: Sequence[AcquiredRecords] = ()
        while True:
            answer = await self._client.call(self._request(epoch, before), FETCH_VERSION)
            tally.add(sum(one.last_offset - one.first_offset + 1 for one in before))
            before = _acquired(answer)
            epoch += 1

    def _request(self, epoch: int, before: Sequence[AcquiredRecords]) -> ShareFetchRequest:
        acknowledged = tuple(
            AcknowledgementBatch(first_offset=one.first_offset, last_offset=one.last_offset, acknowledge_types=ACCEPT)
            for one in before
        )
        topics = (
            TopicToAcknowledge(
                topic_id=self._topic_id,
                partitions=(PartitionToAcknowledge(partition=0, acknowledgement_batches=acknowledged),),
            ),
        )
        return ShareFetchRequest(
            group_id=self._group,
            member_id=self._member,
            share_session_epoch=epoch,
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            topics=topics if before or not epoch else (),
            **self._limits,
        )


def _acquired(answer: ShareFetchResponse) -> Sequence[AcquiredRecords]:
    """The ranges of offsets in a response."""
    if answer.error_code:
        raise Refused(f"ShareFetch failed with error {answer.error_code}: {answer.error_message}")
    for topic in answer.topics:
        for one in topic.partitions:
            if error := one.error_code or one.acknowledge_error_code:
                raise Refused(f"ShareFetch failed with error {error}")
            return one.acquired_records
    return ()
