"""Idempotence: the rules of KIP-98 for sequences and epochs, five batches deep."""

from pathlib import Path

import pytest

from tailrace.log.directory.state_file import Unreadable
from tailrace.log.state.producers import ProducerStates
from tailrace.model import limits
from tailrace.model.faults import InvalidBatch, OutOfOrderSequence, StaleProducerEpoch
from tailrace.records.header import read_header
from tests.unit.log.logs import DAY_MS, NOW, on_loop, one_batch, open_log, put


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
        put(log, sent(2, count=2))  # the sixth from the end is forgotten
    with pytest.raises(OutOfOrderSequence):
        put(log, sent(4, count=1))  # the same start, another batch


@on_loop
async def test_a_gap_is_refused(tmp_path: Path) -> None:
    log = await open_log(tmp_path / "p")
    put(log, sent(0))
    with pytest.raises(OutOfOrderSequence, match="sequence 2 after 0"):
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
    with pytest.raises(OutOfOrderSequence, match="begins epoch 4"):
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


def test_a_producer_id_without_sequence_makes_no_sense() -> None:
    header = read_header(one_batch(producer=(7, 0, -1)))
    with pytest.raises(InvalidBatch):
        ProducerStates(DAY_MS).check(header)


def test_the_idle_are_forgotten() -> None:
    states = ProducerStates(DAY_MS)
    for producer in (1, 2):
        states.sent(read_header(sent(0, producer=producer)), 0, -1, NOW)
    states.sent(read_header(sent(1, producer=1)), 1, -1, NOW + 10)
    states.expire(NOW + DAY_MS)
    assert states.get(2) is None
    assert states.get(1) is not None
    states.expire(NOW + DAY_MS + 10)
    assert len(states) == 0


def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.log.state.producers.PRODUCERS_PER_PARTITION_MAX", 3)
    states = ProducerStates(DAY_MS)
    for producer in (1, 2, 3, 1, 4):
        states.sent(read_header(sent(0, producer=producer)), 0, -1, NOW)
    assert [producer for producer in range(6) if states.get(producer)] == [1, 3, 4]


def test_a_snapshot_holds_everything() -> None:
    states = ProducerStates(DAY_MS)
    for sequence in range(7):
        states.sent(read_header(sent(sequence, producer=1)), sequence, NOW, NOW + sequence)
    states.sent(read_header(sent(5, epoch=9, producer=2)), 7, -1, NOW)
    again = ProducerStates.load(states.dump(), DAY_MS)
    assert again.dump() == states.dump()
    assert again.check(read_header(sent(6, producer=1))) == (6, 6, 6, 6, NOW)
    producer = again.get(1)
    assert producer is not None
    assert len(producer.sent) == limits.PRODUCER_BATCHES_KEPT


@pytest.mark.parametrize("line", ["1 0 5", "x 0 5 1,1,1,1,1", "1 0 5 1,1", "1 0"])
def test_a_senseless_snapshot_is_refused(line: str) -> None:
    from tailrace.log.directory.state_file import write_state

    with pytest.raises(Unreadable):
        ProducerStates.load(write_state("producers", 1, [line]), DAY_MS)
