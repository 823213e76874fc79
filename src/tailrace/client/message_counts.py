"""Counts the messages between two offsets of a partition.

Not every offset has a message: control batches, aborted transactions and what compaction has removed have none. Which
offsets these are does not depend on a group, so what was read once is remembered for all of them, as one range of
offsets for each partition. Only what lies outside is read. Of a compacted topic nothing is remembered: messages vanish.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from tailrace.client.admin import topic_settings
from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.visible_batches import VisibleBatches
from tailrace.client.visible_reading import read_visible
from tailrace.model.ids import Id, PartitionName
from tailrace.model.limits import MiB
from tailrace.records.opened import open_batch
from tailrace.wire.errors import Error

PARTITIONS_KEPT_MAX: Final = 10_000
GAPS_KEPT_MAX: Final = 100_000  # of a partition
PIECE_BYTES: Final = 4 * MiB
POLICY_KEPT_S: Final = 60.0

Gap = tuple[int, int]  # the first and the last offset without a message


class CountedRange:
    """The offsets from `first` up to `end` have a message, but for the gaps, which are in order."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.end = first
        self.gaps: list[Gap] = []

    def messages(self, first: int, end: int) -> int:
        count = max(0, end - first)
        for gap in self.gaps[max(0, bisect_left(self.gaps, (first, 0)) - 1) :]:
            if gap[0] >= end:
                break
            count -= max(0, min(gap[1] + 1, end) - max(gap[0], first))
        return count

    def extend(self, end: int, gaps: list[Gap]) -> None:
        """With what follows."""
        self.gaps += gaps
        self.end = end

    def precede(self, first: int, gaps: list[Gap]) -> None:
        self.gaps = gaps + self.gaps
        self.first = first


class MessageCounts:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._ranges: OrderedDict[tuple[Id, int], CountedRange] = OrderedDict()
        self._compacted: dict[str, tuple[float, bool]] = {}  # by topic: when that was seen, and whether it is

    @property
    def remembered(self) -> int:
        """The number of partitions."""
        return len(self._ranges)

    async def between(self, place: PartitionName, first: int, end: int) -> int:
        """How many messages readers of committed records see; deleted ones do not count."""
        if first >= end:
            return 0
        if await self._is_compacted(place.topic):
            known = CountedRange(first)
            known.extend(end, await self._gaps(place, first, end))
            return known.messages(first, end)
        key = (self._cluster.map.topic_id(place.topic), place.partition)
        kept = self._ranges.get(key)
        if kept is None or len(kept.gaps) > GAPS_KEPT_MAX:
            kept = self._ranges[key] = CountedRange(first)
            if len(self._ranges) > PARTITIONS_KEPT_MAX:
                self._ranges.popitem(last=False)
        self._ranges.move_to_end(key)
        while kept.end < end:
            before = kept.end
            gaps = await self._gaps(place, before, end)
            if kept.end == before:  # else another caller has read it meanwhile
                kept.extend(end, gaps)
        while first < kept.first:
            before = kept.first
            gaps = await self._gaps(place, first, before)
            if kept.first == before:
                kept.precede(first, gaps)
        return kept.messages(first, end)

    async def _is_compacted(self, topic: str) -> bool:
        now = self._cluster.driver.now()
        at, is_compacted = self._compacted.get(topic, (now - POLICY_KEPT_S, False))
        if now - at >= POLICY_KEPT_S:
            values = {one.name: one.value or "" for one in await topic_settings(self._cluster, topic)}
            is_compacted = "compact" in values.get("cleanup.policy", "")
            if len(self._compacted) >= PARTITIONS_KEPT_MAX:
                self._compacted.clear()
            self._compacted[topic] = (now, is_compacted)
        return is_compacted

    async def _gaps(self, place: PartitionName, first: int, end: int) -> list[Gap]:
        """The offsets from `first` up to `end` that have no message."""
        found: list[Gap] = []
        at = first
        while at < end:
            try:
                visible = await read_visible(self._cluster, place, at, PIECE_BYTES)
            except Refused as refused:
                if refused.error is not Error.OFFSET_OUT_OF_RANGE:
                    raise
                visible = None
            if visible is None or visible.end <= at:  # deleted meanwhile, or truncated
                _add(found, at, end - 1)
                break
            for offset, last in _messages(visible):
                _add(found, at, min(offset, end) - 1)
                at = max(at, last + 1)
            _add(found, at, min(visible.end, end) - 1)
            at = max(at, visible.end)
        return found


def _add(gaps: list[Gap], first: int, last: int) -> None:
    if first <= last:
        gaps.append((first, last))


def _messages(visible: VisibleBatches) -> Iterator[tuple[int, int]]:
    """Ranges of offsets that all have a message, in order."""
    for at, header in visible.batches:
        if header.records == header.last_offset - header.base_offset + 1:
            yield header.base_offset, header.last_offset
        elif header.records:
            for record in open_batch(visible.data[at : at + header.size]):
                yield record.offset, record.offset
