"""The callers that this door has seen lately, written to a topic every `WRITE_EVERY_S`, beside the requests."""

import asyncio
import logging
from typing import Any, Final

from tailrace.client.cluster import Retry
from tailrace.client.faults import ClientError
from tailrace.client.last_seen import HEALTH, Kind, LastSeen, Seen
from tailrace.client.topics import make_topic, partitions_of
from tailrace.doors.upstream import Upstream
from tailrace.model.limits import HEALTH_WRITTEN_MAX

logger: Final = logging.getLogger(__name__)

WRITE_EVERY_S: Final = 5.0
WRITER: Final = "User:HEALTH"  # the principal of its producer, so that it delays no caller's


class Health:
    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._view: LastSeen | None = None
        self._seen: dict[tuple[Kind, int], str] = {}  # since the last write: the topic of each

    def saw(self, kind: Kind, number: int, topic: str) -> None:
        if len(self._seen) < HEALTH_WRITTEN_MAX:
            self._seen[kind, number] = topic

    async def run(self) -> None:
        """Write, in an endless loop. What cannot be written is seen again, or it is not worth it."""
        while True:
            await asyncio.sleep(WRITE_EVERY_S)
            try:
                async with asyncio.timeout(WRITE_EVERY_S):
                    await self._write()
            except (ClientError, Retry, TimeoutError) as error:
                logger.debug("last-seen times were not written: %s", error)

    async def _write(self) -> None:
        cluster = self._upstream.cluster
        if await partitions_of(cluster, HEALTH.topic) is None:
            if not self._seen:
                return  # nobody uses the queue
            await make_topic(cluster, HEALTH.topic, 1, cleanup_policy="compact")
        if self._upstream.broker_id is not None:
            self._seen["broker", self._upstream.broker_id] = ""
        seen, self._seen = self._seen, {}
        now_ms = cluster.driver.wall_ms()
        with self._upstream.producers.of(WRITER) as producer:
            for (kind, number), topic in seen.items():
                one = Seen(kind=kind, id=number, topic=topic, at_ms=now_ms)
                written = await producer.send(HEALTH.topic, one.value, key=one.key, partition=HEALTH.partition)
                written.add_done_callback(_forget)

    async def report(self, limit: int) -> dict[str, Any]:
        """Brokers, producers and consumers, at most so many of each, those first that were seen last."""
        cluster = self._upstream.cluster
        response = await cluster.retry("list the brokers", lambda: cluster.refresh(()))
        if self._view is None:
            self._view = LastSeen(cluster)
        seen = await self._view.read()
        now_ms = cluster.driver.wall_ms()
        brokers = {one.id: {"id": one.id, "alive": False, "last_seen_ms": one.at_ms} for one in _of(seen, "broker")}
        brokers |= {one.node_id: {"id": one.node_id, "alive": True, "last_seen_ms": now_ms} for one in response.brokers}
        return {
            "brokers": [brokers[number] for number in sorted(brokers)][:limit],
            "producers": [_client(one) for one in _of(seen, "producer")[:limit]],
            "consumers": [_client(one) for one in _of(seen, "consumer")[:limit]],
        }


def _of(seen: list[Seen], kind: Kind) -> list[Seen]:
    return [one for one in seen if one.kind == kind]


def _client(one: Seen) -> dict[str, Any]:
    return {"id": one.id, "topic": one.topic, "last_seen_ms": one.at_ms}


def _forget(written: "asyncio.Future[Any]") -> None:
    if not written.cancelled():
        written.exception()  # retrieved, so that asyncio logs nothing about it
