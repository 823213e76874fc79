"""Producer state: the epochs and sequences by which a retried batch is recognised as a duplicate (KIP-98).

For each producer id the partition keeps the epoch and the last five batches (clients have at most five requests in
flight). A batch with the sequences of a kept one is a duplicate, and is answered with the original's offsets. Any other
batch must continue the last sequence, or begin at 0 in a higher epoch. An unknown producer may begin at any sequence:
its state may have expired, and a refusal would stop it for good. Sequences wrap around from 2³¹ - 1 to 0.

Producers are kept in the order of last use. Idle ones are removed, oldest first, after `expiration_ms`, or earlier when
there are more than `PRODUCERS_PER_PARTITION_MAX`. A producer with an open transaction is never removed: its next batch
would be taken for the first of the transaction.

A marker ends a transaction, and may carry a higher producer epoch: the coordinator raises it to fence a producer, and
for transactions v2 (KIP-890) at the end of every transaction. The producer then continues at sequence 0, and its
earlier batches are no longer kept.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from tailrace.log.directory.state_file import Unreadable, read_state, write_state
from tailrace.log.state.aborted_index import Aborted
from tailrace.log.state.open_transactions import Transactions
from tailrace.model.faults import InvalidBatch, InvalidTransactionState, OutOfOrderSequence, StaleProducerEpoch
from tailrace.model.limits import PRODUCER_BATCHES_KEPT, PRODUCERS_PER_PARTITION_MAX
from tailrace.records.control import Marker, read_control
from tailrace.records.header import CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT, BatchHeader

KIND: Final = "producers"
VERSION: Final = 2
SEQUENCE_MASK: Final = 0x7FFFFFFF
NO_SEQUENCE: Final = -1
NO_COORDINATOR: Final = -1


class SentBatch(NamedTuple):
    """A batch of a producer that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    append_time_ms: int  # -1 unless the topic has LogAppendTime


class Producer:
    __slots__ = ("coordinator_epoch", "epoch", "sent", "used_ms")

    def __init__(
        self, epoch: int, sent: list[SentBatch], used_ms: int, coordinator_epoch: int = NO_COORDINATOR
    ) -> None:
        self.epoch = epoch
        self.sent = sent  # oldest first, at most `PRODUCER_BATCHES_KEPT`; empty after a marker with a new epoch
        self.used_ms = used_ms
        self.coordinator_epoch = coordinator_epoch  # of the last marker

    @property
    def last_sequence(self) -> int:
        return self.sent[-1].last_sequence if self.sent else NO_SEQUENCE


class ProducerStates:
    def __init__(self, expiration_ms: int) -> None:
        self._producers: OrderedDict[int, Producer] = OrderedDict()  # least recently used first
        self.expiration_ms = expiration_ms
        self.transactions = Transactions()

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> SentBatch | None:
        """The original when this batch is a duplicate; None when it may be appended; otherwise raises a fault."""
        first = header.base_sequence
        if first < 0 or header.producer_epoch < 0:
            raise InvalidBatch(
                f"producer {header.producer_id}: invalid epoch {header.producer_epoch} or sequence {first}"
            )
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        epoch = header.producer_epoch
        if self.transactions.open:
            self._check_in_transaction(header)
        if epoch == producer.epoch:
            last = producer.sent[-1].last_sequence if producer.sent else NO_SEQUENCE
            if first == (last + 1) & SEQUENCE_MASK:
                return None
            for sent in producer.sent:
                if sent.first_sequence == first and sent.last_sequence == header.last_sequence:
                    return sent
            raise OutOfOrderSequence(
                f"Out of order sequence number for producer {header.producer_id}: {first} (incoming seq. number), "
                f"{last} (current end sequence number)"
            )
        if epoch < producer.epoch:
            raise StaleProducerEpoch(
                f"Epoch of producer {header.producer_id} is {epoch}, "
                f"which is smaller than the last seen epoch {producer.epoch}"
            )
        if first != 0:
            raise OutOfOrderSequence(
                f"Invalid sequence number for new epoch of producer {header.producer_id}: {epoch} (request epoch), "
                f"{first} (seq. number), {producer.epoch} (current producer epoch)"
            )
        return None

    def _check_in_transaction(self, header: BatchHeader) -> None:
        if header.producer_id in self.transactions.open and not header.attributes & TRANSACTIONAL_BIT:
            raise InvalidTransactionState(
                f"producer {header.producer_id} has an open transaction and sent a batch that is not transactional"
            )

    def replay(self, header: BatchHeader, batch: memoryview, now_ms: int) -> Aborted | None:
        """Like `apply`, for a batch read from the log."""
        if header.producer_id < 0:
            return None
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1
        return self.apply(header, batch, header.base_offset, append_time, now_ms)

    def apply(
        self, header: BatchHeader, batch: memoryview, base_offset: int, append_time_ms: int, now_ms: int
    ) -> Aborted | None:
        """Take in a producer's batch that was appended; returns the transaction that it aborts, if it is a marker."""
        if header.attributes & CONTROL_BIT:
            return self._end_transaction(header, batch, base_offset, now_ms)
        if header.base_sequence >= 0:
            self.add_batch(header, base_offset, append_time_ms, now_ms)
        if header.attributes & TRANSACTIONAL_BIT:
            if header.base_sequence < 0:  # written by a group coordinator on behalf of the producer
                self._move_to_epoch(header.producer_id, header.producer_epoch, now_ms)
            self.transactions.begin(header.producer_id, base_offset)
        return None

    def _end_transaction(self, header: BatchHeader, batch: memoryview, offset: int, now_ms: int) -> Aborted | None:
        control, producer_id = read_control(batch), header.producer_id
        if not isinstance(control, Marker):
            return None
        self._move_to_epoch(producer_id, header.producer_epoch, now_ms).coordinator_epoch = control.coordinator_epoch
        first = self.transactions.end(producer_id, offset)
        if first is None or control.committed:
            return None
        return Aborted(producer_id, first, offset, self.transactions.first_open(offset + 1))

    def _move_to_epoch(self, producer_id: int, epoch: int, now_ms: int) -> Producer:
        """The producer's state, created if need be; a new epoch starts without batches."""
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = Producer(epoch, [], now_ms)
            self._add(producer_id, producer, now_ms)
        if epoch != producer.epoch:
            producer.epoch, producer.sent = epoch, []
        producer.used_ms = now_ms
        self._producers.move_to_end(producer_id)
        return producer

    def add_batch(self, header: BatchHeader, base_offset: int, append_time_ms: int, now_ms: int) -> None:
        """Keep the sequences and offsets of a batch that was appended."""
        producer_id = header.producer_id
        batch = SentBatch(
            header.base_sequence,
            header.last_sequence,
            base_offset,
            base_offset + header.last_offset_delta,
            append_time_ms,
        )
        producer = self._producers.get(producer_id)
        if producer is None:
            self._add(producer_id, Producer(header.producer_epoch, [batch], now_ms), now_ms)
            return
        if producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.sent = [batch]
        else:
            producer.sent.append(batch)
            if len(producer.sent) > PRODUCER_BATCHES_KEPT:
                del producer.sent[0]
        producer.used_ms = now_ms
        self._producers.move_to_end(producer_id)

    def _add(self, producer_id: int, producer: Producer, now_ms: int) -> None:
        self.expire(now_ms)
        if len(self._producers) >= PRODUCERS_PER_PARTITION_MAX:
            oldest = next((known for known in self._producers if known not in self.transactions.open), None)
            if oldest is not None:
                del self._producers[oldest]
        self._producers[producer_id] = producer

    def expire(self, now_ms: int) -> None:
        """Remove the producers that have been idle for `expiration_ms`."""
        before, idle = now_ms - self.expiration_ms, []
        for producer_id, producer in self._producers.items():
            if producer.used_ms > before:
                break
            if producer_id not in self.transactions.open:
                idle.append(producer_id)
        for producer_id in idle:
            del self._producers[producer_id]

    def items(self) -> Iterable[tuple[int, Producer]]:
        return self._producers.items()

    def dump(self) -> bytes:
        producers = (_line(key, producer) for key, producer in self._producers.items())
        return write_state(KIND, VERSION, (*producers, *self.transactions.lines()))

    @classmethod
    def load(cls, data: bytes, expiration_ms: int) -> "ProducerStates":
        states = cls(expiration_ms)
        try:
            for line in read_state(KIND, VERSION, data):
                words = line.split()
                if states.transactions.take_line(words):
                    continue
                producer_id, epoch, used_ms, coordinator_epoch, *batches = words
                sent = [SentBatch(*map(int, batch.split(","))) for batch in batches]
                if len(sent) > PRODUCER_BATCHES_KEPT:
                    raise ValueError(
                        f"producer {producer_id} has {len(sent)} batches, at most {PRODUCER_BATCHES_KEPT} are kept"
                    )
                states._producers[int(producer_id)] = Producer(int(epoch), sent, int(used_ms), int(coordinator_epoch))
        except (ValueError, TypeError) as error:
            raise Unreadable(f"{KIND}: {error}") from error
        return states


def _line(producer_id: int, producer: Producer) -> str:
    batches = " ".join(",".join(map(str, sent)) for sent in producer.sent)
    return f"{producer_id} {producer.epoch} {producer.used_ms} {producer.coordinator_epoch} {batches}"
