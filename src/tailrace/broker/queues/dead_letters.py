"""Dead letters: copies of records that no member could process, in a topic of the group's choice (KIP-1191).

A copy has the key, value, headers and timestamp of the record, and further headers that say where it came from and
why it was given up. The position of the record (topic, partition, offset) identifies copies that were written twice.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from tailrace.broker.partitions.partition import Partition
from tailrace.model.faults import CoordinatorUnavailable, InvalidRequest
from tailrace.model.share_settings import ShareSettings
from tailrace.ports import Clock
from tailrace.queues.share_partition import DeadLetter
from tailrace.queues.state import ShareKey
from tailrace.records.opened import batches, walk_batch
from tailrace.records.record import Headers, Record

if TYPE_CHECKING:
    from tailrace.client.producer import Producer

READ_BYTES: Final = 1024 * 1024
PREFIX: Final = "__dlq.errors."
REASON: Final = "tailrace.dlq.reason"


class DeadLetters:
    def __init__(self, connect: Callable[[], "Producer"], clock: Clock) -> None:
        self._connect = connect
        self._clock = clock
        self._producer: Producer | None = None

    async def write(self, key: ShareKey, partition: Partition, letter: DeadLetter, settings: ShareSettings) -> None:
        """Copy records to the dead letter topic; returns when all copies are committed."""
        from tailrace.client.faults import ClientError  # only brokers with dead letters need a client

        topic, _, number = partition.name.rpartition("-")
        if settings.dead_letter_topic == topic:
            raise InvalidRequest(f"topic {topic} is its own dead letter topic in share group {key.group}")
        if self._producer is None:
            self._producer = self._connect()
        offset = max(letter.first, partition.log.start)
        try:
            while offset <= letter.last:
                read = partition.read(offset, READ_BYTES) or await partition.read_cold(offset, READ_BYTES)
                if not read.data:
                    break
                sent = [
                    await self._producer.send(
                        settings.dead_letter_topic,
                        record.value if settings.copies_dead_letters else None,
                        key=record.key if settings.copies_dead_letters else None,
                        headers=(*record.headers, *self._why(key, topic, number, record, letter)),
                        timestamp_ms=record.timestamp,
                    )
                    for record in _records(read.data, offset, letter.last)
                ]
                await asyncio.gather(*sent)
                offset = read.next_offset
        except ClientError as error:
            raise CoordinatorUnavailable(f"cannot write to topic {settings.dead_letter_topic}: {error}") from None

    def _why(self, key: ShareKey, topic: str, number: str, record: Record, letter: DeadLetter) -> Headers:
        message = "Offset rejected by client." if letter.rejected else "Offset delivery count exceeded the threshold."
        said = {
            f"{PREFIX}topic": topic,
            f"{PREFIX}partition": number,
            f"{PREFIX}offset": record.offset,
            f"{PREFIX}group": key.group,
            f"{PREFIX}delivery.count": letter.deliveries,
            f"{PREFIX}message": message,
            f"{PREFIX}timestamp": self._clock.wall_ms(),
            REASON: "rejected" if letter.rejected else "exceeded",
        }
        return tuple((name, str(value).encode()) for name, value in said.items())


def _records(data: "bytes | bytearray | memoryview", first: int, last: int) -> Iterator[Record]:
    for batch, header in batches(data):
        if not header.is_control and header.base_offset <= last:
            yield from (record for record in walk_batch(batch) if first <= record.offset <= last)
