"""`tailrace.client.batching` and `partitioning`: order and sequence numbers, whatever happens to batches."""

from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2

from tailrace.client.batching import Batch, BatchLimits, Outbox
from tailrace.client.partitioning import partition_of
from tailrace.model.ids import PartitionName
from tailrace.records.record import NewRecord

ZERO, ONE = PartitionName("t", 0), PartitionName("t", 1)
SMALL = BatchLimits(batch_bytes=100, buffer_bytes=1000, linger_s=1.0, delivery_s=10.0)


def record(value: int) -> NewRecord:
    return NewRecord(str(value).encode())


def test_records_gather_until_a_batch_is_full_or_has_lingered() -> None:
    outbox = Outbox(SMALL)
    outbox.add(ZERO, record(1), "a", now=0.0)
    assert list(outbox.due(0.5)) == []
    assert outbox.next_due_at() == 1.0
    for value in range(4):
        outbox.add(ZERO, record(value), "b", now=0.6)
    (first,) = outbox.due(0.6)
    assert len(first.records) == 3
    assert list(outbox.due(5.0)) == [], "one batch of a partition is in flight at a time"
    outbox.finished(first)
    assert [len(one.records) for one in outbox.due(1.6)] == [2]


def test_the_buffer_is_bounded_but_takes_one_large_record() -> None:
    outbox = Outbox(SMALL)
    assert outbox.has_room(5000)
    outbox.add(ZERO, NewRecord(b"x" * 5000), "a", 0.0)
    assert not outbox.has_room(1)
    (batch,) = outbox.due(1.0)
    outbox.finished(batch)
    assert outbox.size == 0


def test_an_expired_batch_gives_its_sequence_number_back_unless_it_may_be_written() -> None:
    for uncertain, expected in ((False, 0), (True, 1)):
        outbox = Outbox(SMALL)
        outbox.add(ZERO, record(1), "a", now=0.0)
        (batch,) = outbox.due(2.0)
        batch.uncertain = uncertain
        outbox.retry(batch, not_before=3.0)
        assert outbox.expire(9.0) == []
        assert outbox.expire(10.0) == [batch]
        outbox.add(ZERO, record(2), "b", now=10.0)
        (following,) = outbox.due(12.0)
        assert following.sequence == expected
        outbox.rejected(following)


@given(st.lists(st.sampled_from(["add", "add some", "acked", "lost", "lost after append", "refused"]), max_size=60))
def test_a_broker_that_checks_sequences_gets_every_record_once_and_in_order(events: list[str]) -> None:
    """A model of a broker: it appends a batch only if its sequence number is the next, and knows repeated ones."""
    outbox, log, next_sequence, sent, refused = Outbox(SMALL), [], 0, 0, []
    now = 0.0

    def append(batch: Batch) -> None:
        nonlocal next_sequence
        assert [batch.records[first] for first in batch.firsts] == list(map(record, batch.tokens))
        if batch.sequence == next_sequence:
            log.extend(batch.records)
            next_sequence += len(batch.records)
        else:
            assert batch.sequence < next_sequence, "the broker would refuse a gap"

    for event in [*events, *["acked"] * 100]:
        now += 2.0
        if event == "add":
            outbox.add(ZERO, record(sent), sent, now)
            sent += 1
            continue
        if event == "add some":
            for some, size in outbox.portions([record(sent + more) for more in range(7)]):
                outbox.add_run(ZERO, some, sent, now, size)
                sent += len(some)
            continue
        for batch in list(outbox.due(now)):
            if event == "acked":
                append(batch)
                outbox.finished(batch)
            elif event == "refused" and not batch.uncertain:
                refused.extend(batch.records)
                outbox.rejected(batch)
            else:
                if event == "lost after append":
                    append(batch)
                batch.uncertain = True
                outbox.retry(batch, now)
    assert log == [record(number) for number in range(sent) if record(number) not in refused]
    assert len(outbox) == 0
    assert outbox.size == 0


@given(st.binary(max_size=40), st.integers(1, 100))
def test_keys_go_where_kafkas_clients_send_them(key: bytes, count: int) -> None:
    assert partition_of(key, count) == (murmur2(key) & 0x7FFFFFFF) % count
