"""Deletes the messages of DMQP's topics that every group has finished, from the oldest on.

A message may go when every group that has a position on its topic is past it (share groups, consumer groups, and so the
pipeline's too), when the group through which DMQP pops has a position at all, and when the message is older than
`dmqp.trim.delay.ms`. So a group that begins within that time after a message was pushed still finds it. Every door does
this on its own: deleting what is deleted changes nothing. Only the door's own topics are trimmed (`dmqp-0` and so on),
never one that the setting `dmqp.topics` names: its own retention settings apply.
"""

import asyncio
import logging
from collections.abc import Mapping
from math import inf
from typing import Final

from tailrace.client.cluster import Cluster, Retry
from tailrace.client.faults import ClientError, check
from tailrace.client.group_admin import all_committed_offsets, list_groups
from tailrace.client.offsets import EARLIEST, LATEST, by_topic, offsets_at
from tailrace.client.share_admin import share_group_offsets
from tailrace.doors.dmqp.topics import Topics
from tailrace.model.ids import PartitionName
from tailrace.wire.messages.delete_records import DeleteRecordsRequest, PartitionToTrim, TopicToTrim

logger: Final = logging.getLogger(__name__)

INTERVAL_MIN_S: Final = 1.0
INTERVAL_MAX_S: Final = 300.0
NO_OFFSET: Final = -1
SHARE: Final = "share"  # the type of a group


class Trimming:
    def __init__(self, cluster: Cluster, topics: Topics, delay_ms: int) -> None:
        self._cluster = cluster
        self._topics = topics
        self._delay_ms = delay_ms

    async def run(self) -> None:
        """Trim from time to time, in an endless loop."""
        interval_s = min(max(self._delay_ms / 4000, INTERVAL_MIN_S), INTERVAL_MAX_S)
        while True:
            await asyncio.sleep(interval_s * self._cluster.driver.jitter(0.75, 1.25))
            try:
                await self.trim()
            except (ClientError, Retry, OSError, TimeoutError) as error:
                logger.info("dmqp: cannot delete popped messages, retrying later: %s", error)

    async def trim(self) -> dict[PartitionName, int]:
        """Delete what may go; returns the new starts of the partitions that have got shorter."""
        groups = self._topics.kept_until_popped()
        await self._cluster.retry("find the topics of DMQP", lambda: self._cluster.refresh(groups))
        partitions = [one for name in groups for one in self._cluster.map.partitions(name)]
        if not partitions:
            return {}
        finished = await self._finished(groups, partitions)
        old = await self._old(list(finished))
        wanted = {one: min(offset, old[one]) for one, offset in finished.items()}
        starts = await offsets_at(self._cluster, dict.fromkeys(wanted, EARLIEST))
        wanted = {one: offset for one, offset in wanted.items() if offset > starts[one]}
        await self._delete(wanted)
        if wanted:
            logger.info("dmqp: deleted popped messages of %d partitions", len(wanted))
        return wanted

    async def _finished(self, groups: Mapping[str, str], partitions: list[PartitionName]) -> dict[PartitionName, int]:
        """For each partition on which DMQP's own group has a position, the lowest position of any group."""
        lowest: dict[PartitionName, float] = dict.fromkeys(partitions, inf)
        own: dict[PartitionName, None] = {}
        for group in await list_groups(self._cluster):
            for one, offset in (await self._positions(group.group_id, group.group_type)).items():
                if one in lowest:
                    lowest[one] = min(lowest[one], offset)
                    if groups[one.topic] == group.group_id:
                        own[one] = None
        return {one: int(lowest[one]) for one in own}

    async def _positions(self, group: str, kind: str) -> dict[PartitionName, int]:
        if kind.lower() == SHARE:
            starts = await share_group_offsets(self._cluster, group)
            return {one: found.start for one, found in starts.items() if found.start is not None}
        return await all_committed_offsets(self._cluster, group)

    async def _old(self, partitions: list[PartitionName]) -> dict[PartitionName, int]:
        """The first offset of each partition that is too young to go."""
        before_ms = max(self._cluster.driver.wall_ms() - self._delay_ms, 0)
        young = await offsets_at(self._cluster, dict.fromkeys(partitions, before_ms))
        ends = await offsets_at(self._cluster, {one: LATEST for one in partitions if young[one] == NO_OFFSET})
        return young | ends

    async def _delete(self, wanted: Mapping[PartitionName, int]) -> None:
        for address, ones in (await self._cluster.by_leader(wanted)).items():
            topics = tuple(
                TopicToTrim(
                    name=topic,
                    partitions=tuple(PartitionToTrim(partition=one.partition, offset=wanted[one]) for one in of_topic),
                )
                for topic, of_topic in by_topic(ones).items()
            )
            answer = await self._cluster.call(address, DeleteRecordsRequest(topics=topics))
            for topic in answer.topics:
                for one in topic.partitions:
                    check(one.error_code, f"trim {topic.name}-{one.partition}")
