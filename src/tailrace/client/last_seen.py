"""When brokers, producers and consumers of the HTTP queue were last seen: a compacted topic, and a view of it.

Doors write a record for each that they have seen, every few seconds, and wait for none of them. So a time is that of
the last record, some seconds old; what no door has seen yet has no record.
"""

import json
from collections import OrderedDict
from typing import Final, Literal

from tailrace.client.cluster import Cluster
from tailrace.client.faults import Refused
from tailrace.client.offsets import EARLIEST, offsets_at
from tailrace.client.topics import partitions_of
from tailrace.client.visible_reading import read_visible
from tailrace.model.frozen import frozen
from tailrace.model.ids import PartitionName
from tailrace.model.limits import HEALTH_KEPT_MAX, MiB
from tailrace.records.opened import open_batch
from tailrace.wire.errors import Error

HEALTH: Final = PartitionName("__http_health", 0)
VERSION: Final = 1
READ_MAX_BYTES: Final = 1 * MiB
Kind = Literal["broker", "producer", "consumer"]


@frozen
class Seen:
    kind: Kind
    id: int
    topic: str  # of a producer or a consumer
    at_ms: int  # since 1970

    @property
    def key(self) -> bytes:
        return f"{self.kind}:{self.id}".encode()

    @property
    def value(self) -> bytes:
        fields = {"version": VERSION, "kind": self.kind, "id": self.id, "topic": self.topic, "at_ms": self.at_ms}
        return json.dumps(fields).encode()


class LastSeen:
    """All that were seen, by the last record of each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._offset: int | None = None  # up to which the topic was read
        self._found: OrderedDict[bytes, Seen] = OrderedDict()  # the one that was written last at the end

    async def read(self) -> list[Seen]:
        """The last-seen times now, newest first; only records that are new since the last call are read."""
        if await partitions_of(self._cluster, HEALTH.topic) is not None:
            try:
                await self._read_on()
            except Refused as refused:
                if refused.error is not Error.OFFSET_OUT_OF_RANGE:
                    raise
                self._offset = None  # the topic was made again: the next call begins anew
        return list(reversed(self._found.values()))

    async def _read_on(self) -> None:
        if self._offset is None:
            self._found.clear()
            self._offset = (await offsets_at(self._cluster, {HEALTH: EARLIEST}))[HEALTH]
        while True:
            visible = await read_visible(self._cluster, HEALTH, self._offset, READ_MAX_BYTES)
            if visible is None or visible.end <= self._offset:
                return
            for at, header in visible.batches:
                for record in open_batch(visible.data[at : at + header.size]):
                    if record.offset >= self._offset and record.key is not None:
                        self._take(record.key, record.value)
            self._offset = visible.end

    def _take(self, key: bytes, value: bytes | None) -> None:
        self._found.pop(key, None)
        if value is not None:
            fields = json.loads(value)
            self._found[key] = Seen(kind=fields["kind"], id=fields["id"], topic=fields["topic"], at_ms=fields["at_ms"])
        if len(self._found) > HEALTH_KEPT_MAX:
            self._found.popitem(last=False)
