"""Idempotent producers: the rules of KIP-98 for sequences and epochs, five batches deep."""

from pathlib import Path

import pytest

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.state.producers import ProducerStates
from tailrace.model import limits
from tailrace.model.faults import InvalidBatch, InvalidTransactionState, OutOfOrderSequence, StaleProducerEpoch
from tailrace.records.header import read_header
from tests.unit.log.logs import DAY_MS, NOW, on_loop, one_batch, open_log, put
from tests.unit.log.state.transacting import mark, send


def sent(sequence: int, *, epoch: int = 0, producer: int = 7, count: int = 1) -> memoryview:
    return one_batch([b"v"] * count, producer=(producer, epoch, sequence))


@on_loop
async def test_one_of_the_last_five_is_a_duplicate(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    for sequence in range(0, 14, 2):
        put(log, sent(sequence, count=2))
    for sequence in range(4, 14, 2):
        assert put(log, sent(sequence, count=2))[:4] == (sequence, sequence + 1, True, -1)
    assert log.end == 14
    with pytest.raises(OutOfOrderSequence):
        put(log, sent(2, count=2))  # the sixth from the end is not kept
    with pytest.raises(OutOfOrderSequence):
        put(log, sent(4, count=1))  # the same first sequence, another batch


@on_loop
async def test_a_gap_in_the_sequences_is_refused(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, sent(0))
    with pytest.raises(OutOfOrderSequence, match=r"7: 2 \(incoming seq. number\), 0 \(current"):
        put(log, sent(2))
    put(log, sent(1))


@on_loop
async def test_an_unknown_producer_may_begin_anywhere(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, sent(41))
    put(log, sent(42))
    with pytest.raises(OutOfOrderSequence):
        put(log, sent(44))


@on_loop
async def test_epochs_fence(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, sent(0, epoch=3))
    with pytest.raises(OutOfOrderSequence, match="Invalid sequence number for new epoch"):
        put(log, sent(1, epoch=4))
    put(log, sent(0, epoch=4))
    with pytest.raises(StaleProducerEpoch):
        put(log, sent(1, epoch=3))
    assert not put(log, sent(1, epoch=4)).duplicate


@on_loop
async def test_sequences_wrap_around(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, sent(2**31 - 2, count=3))  # 2³¹ - 2, 2³¹ - 1, 0
    assert put(log, sent(2**31 - 2, count=3)).duplicate
    put(log, sent(1))
    assert log.end == 4


def test_a_producer_id_without_a_sequence_is_invalid() -> None:
    header = read_header(one_batch(producer=(7, 0, -1)))
    with pytest.raises(InvalidBatch):
        ProducerStates(DAY_MS).check(header)


def test_idle_producers_expire() -> None:
    states = ProducerStates(DAY_MS)
    for producer in (1, 2):
        states.add_batch(read_header(sent(0, producer=producer)), 0, -1, NOW)
    states.add_batch(read_header(sent(1, producer=1)), 1, -1, NOW + 10)
    states.expire(NOW + DAY_MS)
    assert states.get(2) is None
    assert states.get(1) is not None
    states.expire(NOW + DAY_MS + 10)
    assert len(states) == 0


def test_the_number_of_producers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.log.state.producers.PRODUCERS_PER_PARTITION_MAX", 3)
    states = ProducerStates(DAY_MS)
    for producer in (1, 2, 3, 1, 4):
        states.add_batch(read_header(sent(0, producer=producer)), 0, -1, NOW)
    assert [producer for producer in range(6) if states.get(producer)] == [1, 3, 4]


def test_a_snapshot_holds_everything() -> None:
    states = ProducerStates(DAY_MS)
    for sequence in range(7):
        states.add_batch(read_header(sent(sequence, producer=1)), sequence, NOW, NOW + sequence)
    states.add_batch(read_header(sent(5, epoch=9, producer=2)), 7, -1, NOW)
    again = ProducerStates.load(states.dump(), DAY_MS)
    assert again.dump() == states.dump()
    assert again.check(read_header(sent(6, producer=1))) == (6, 6, 6, 6, NOW)
    producer = again.get(1)
    assert producer is not None
    assert len(producer.sent) == limits.PRODUCER_BATCHES_KEPT


@pytest.mark.parametrize("line", ["1 0 5", "x 0 5 1,1,1,1,1", "1 0 5 1,1", "1 0"])
def test_an_invalid_snapshot_is_refused(line: str) -> None:
    from tailrace.log.directory.state_file import write_state

    with pytest.raises(Unreadable):
        ProducerStates.load(write_state("producers", 1, [line]), DAY_MS)


@on_loop
async def test_a_marker_that_raises_the_epoch_resets_sequences_and_fences(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7, epoch=1, commits=True)
    with pytest.raises(StaleProducerEpoch):
        send(log, 7, epoch=0, sequence=1)
    with pytest.raises(OutOfOrderSequence):
        send(log, 7, epoch=1, sequence=1)
    send(log, 7, epoch=1, sequence=0)


@on_loop
async def test_a_marker_in_the_same_epoch_keeps_sequences(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    mark(log, 7, commits=True)
    with pytest.raises(OutOfOrderSequence):
        send(log, 7, sequence=2)
    send(log, 7, sequence=1)


@on_loop
async def test_a_producer_with_an_open_transaction_sends_nothing_outside_it(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    send(log, 7)
    with pytest.raises(InvalidTransactionState):
        put(log, one_batch(producer=(7, 0, 1)))
    put(log, one_batch(producer=(8, 0, 0)))
    mark(log, 7)
    put(log, one_batch(producer=(7, 0, 1)))
