"""What a share group has not finished: its first messages, and how many there are. Nothing is locked.

A group's progress with a partition is its start offset: everything before is finished. With one lock a partition
nothing behind the start is finished. Otherwise some may be: no request of Kafka's protocol says which, only how many
offsets; what is shown then is the first message from the start on, though it may be finished.
"""

from collections.abc import Collection, Sequence
from typing import Final

from tailrace.client.cluster import Cluster
from tailrace.client.consumer import Received
from tailrace.client.faults import Refused
from tailrace.client.message_counts import MessageCounts
from tailrace.client.offsets import EARLIEST, LATEST, offsets_at
from tailrace.client.share_admin import ShareOffsets, share_group_offsets
from tailrace.client.visible_reading import read_visible
from tailrace.model.ids import PartitionName
from tailrace.model.limits import KiB, MiB
from tailrace.records.opened import open_batch
from tailrace.wire.errors import Error

PIECE_MIN_BYTES: Final = 4 * KiB  # for one message; of a batch that is larger, brokers return the whole
PIECE_MAX_BYTES: Final = 1 * MiB  # where there is none for long
PIECE_GROWTH: Final = 4

Offsets = dict[PartitionName, ShareOffsets]


class Unfinished:
    def __init__(self, cluster: Cluster) -> None:
        """Over connections of its own: `close` closes them."""
        self._cluster = cluster.with_own_connections(cluster.limits)
        self.counts = MessageCounts(self._cluster)

    def close(self) -> None:
        self._cluster.close()

    async def first(self, group: str, places: Sequence[PartitionName]) -> Received | None:
        """The first message of the first partition that has one. It may be locked."""
        offsets = await share_group_offsets(self._cluster, group)
        doubtful = [one for one in places if one not in offsets or offsets[one].lag != 0]
        starts = await self._starts(doubtful, offsets)
        for place in doubtful:
            found = await self._first_message(place, starts[place])
            if found is not None:
                return found
        return None

    async def count(self, group: str, places: Collection[PartitionName], *, in_order: bool) -> int:
        """The messages that are not finished. If they need not be finished in order (`in_order`), offsets behind the
        start that are finished are subtracted, so those that never had a message count as one message less."""
        ends = await offsets_at(self._cluster, dict.fromkeys(places, LATEST), committed=in_order)
        visible = ends if in_order else await offsets_at(self._cluster, dict.fromkeys(places, LATEST), committed=True)
        offsets = await share_group_offsets(self._cluster, group)
        starts = await self._starts(places, offsets)
        total = 0
        for place in places:
            count = await self.counts.between(place, starts[place], visible[place])
            lag = offsets[place].lag if place in offsets else None
            if not in_order and lag is not None:
                count = min(lag, count - max(0, ends[place] - starts[place] - lag))
            total += max(0, count)
        return total

    async def _starts(self, places: Collection[PartitionName], offsets: Offsets) -> dict[PartitionName, int]:
        """A group that has not begun will begin with the first message that is there."""
        begins = await offsets_at(self._cluster, dict.fromkeys(places, EARLIEST))
        return {one: max(begins[one], (offsets[one].start or 0) if one in offsets else 0) for one in places}

    async def _first_message(self, place: PartitionName, offset: int) -> Received | None:
        piece = PIECE_MIN_BYTES
        while True:
            try:
                visible = await read_visible(self._cluster, place, offset, piece)
            except Refused as refused:
                if refused.error is not Error.OFFSET_OUT_OF_RANGE:
                    raise
                return None
            if visible is None or visible.end <= offset:
                return None
            for at, header in visible.batches:
                for record in open_batch(visible.data[at : at + header.size]):
                    if record.offset >= offset:
                        return Received(place, *record)
            offset, piece = visible.end, min(PIECE_GROWTH * piece, PIECE_MAX_BYTES)
