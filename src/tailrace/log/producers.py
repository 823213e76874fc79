"""What idempotent producers have sent: the memory that turns a retry into one message instead of two.

For each producer id the partition keeps the epoch and the last five batches (clients keep at most five requests in
flight). A batch whose sequences are those of a kept one is a duplicate, answered with the original's offsets. Otherwise
it must follow on the last sequence, or begin at 0 in a higher epoch. A producer nobody remembers may begin anywhere:
its state may have expired, and refusing it would stop it for ever. Sequences wrap around from 2³¹ - 1 to 0.

Producers stand in the order of last use; the idle ones are forgotten from the front after `expiration_ms`, and at once
when there are more than `producers_per_partition_max`.
"""

from collections import OrderedDict
from typing import Final, NamedTuple

from tailrace.log.state_file import Unreadable, read_state, write_state
from tailrace.model.faults import InvalidBatch, OutOfOrderSequence, StaleProducerEpoch
from tailrace.model.limits import producer_batches_kept, producers_per_partition_max
from tailrace.records.header import BatchHeader

kind: Final = "producers"
version: Final = 1
sequence_mask: Final = 0x7FFFFFFF


class Sent(NamedTuple):
    """One batch that a producer has sent."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic has LogAppendTime


class Producer:
    __slots__ = ("epoch", "sent", "used_ms")

    def __init__(self, epoch: int, sent: list[Sent], used_ms: int) -> None:
        self.epoch = epoch
        self.sent = sent  # oldest first, never empty, at most `producer_batches_kept`
        self.used_ms = used_ms


class ProducerStates:
    def __init__(self, expiration_ms: int) -> None:
        self._producers: OrderedDict[int, Producer] = OrderedDict()  # least recently used first
        self.expiration_ms = expiration_ms

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> Sent | None:
        """The original when this batch is a duplicate; None when it may be appended; else a fault."""
        first = header.base_sequence
        if first < 0 or header.producer_epoch < 0:
            raise InvalidBatch(f"producer {header.producer_id} sent epoch {header.producer_epoch}, sequence {first}")
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch = header.producer_epoch
        if epoch == producer.epoch:
            last = producer.sent[-1].last_sequence
            if first == (last + 1) & sequence_mask:
                return None
            for sent in producer.sent:
                if sent.first_sequence == first and sent.last_sequence == header.last_sequence:
                    return sent
            raise OutOfOrderSequence(f"producer {header.producer_id} sent sequence {first} after {last}")
        if epoch < producer.epoch:
            raise StaleProducerEpoch(f"producer {header.producer_id} has epoch {producer.epoch} by now, not {epoch}")
        if first != 0:
            raise OutOfOrderSequence(f"producer {header.producer_id} begins epoch {epoch} with sequence {first}")
        return None

    def sent(self, header: BatchHeader, base_offset: int, append_time_ms: int, now_ms: int) -> None:
        """Remember a batch that is in the log now."""
        producer_id = header.producer_id
        batch = Sent(
            header.base_sequence,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            append_time_ms,
        )
        producer = self._producers.get(producer_id)
        if producer is None:
            self.expire(now_ms)
            if len(self._producers) >= producers_per_partition_max:
                self._producers.popitem(last=False)
            self._producers[producer_id] = Producer(header.producer_epoch, [batch], now_ms)
            return
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.sent = [batch]
        else:
            producer.sent.append(batch)
            if len(producer.sent) > producer_batches_kept:
                del producer.sent[0]
        producer.used_ms = now_ms
        self._producers.move_to_end(producer_id)

    def expire(self, now_ms: int) -> None:
        """Forget those that have been silent for too long."""
        before = now_ms - self.expiration_ms
        while self._producers:
            producer_id = next(iter(self._producers))
            if self._producers[producer_id].used_ms > before:
                return
            del self._producers[producer_id]

    def dump(self) -> bytes:
        return write_state(kind, version, (_line(key, producer) for key, producer in self._producers.items()))

    @classmethod
    def load(cls, data: bytes, expiration_ms: int) -> "ProducerStates":
        states = cls(expiration_ms)
        try:
            for line in read_state(kind, version, data):
                producer_id, epoch, used_ms, *batches = line.split()
                sent = [Sent(*map(int, batch.split(","))) for batch in batches]
                if not 0 < len(sent) <= producer_batches_kept:
                    raise ValueError(f"producer {producer_id} has {len(sent)} batches")
                states._producers[int(producer_id)] = Producer(int(epoch), sent, int(used_ms))
        except (ValueError, TypeError) as error:
            raise Unreadable(f"{kind}: {error}") from error
        return states


def _line(producer_id: int, producer: Producer) -> str:
    batches = " ".join(",".join(map(str, sent)) for sent in producer.sent)
    return f"{producer_id} {producer.epoch} {producer.used_ms} {batches}"
