"""The leader epoch cache, and what OffsetForLeaderEpoch answers from it (KIP-101, KIP-320)."""

import pytest

from tailrace.log.directory.state_file import Unreadable, write_state
from tailrace.log.state.epochs import EpochCache


def cache(*entries: tuple[int, int]) -> EpochCache:
    made = EpochCache()
    for epoch, start in entries:
        made.begin(epoch, start)
    return made


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (1, (1, 5)),  # lower than all known: that epoch, and the start of the first
        (2, (2, 10)),
        (3, (2, 10)),  # epoch 3 has no batches
        (4, (4, 30)),
        (7, (7, 40)),  # the last epoch ends at the log end
        (8, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_where_an_epoch_ends(asked: int, answer: tuple[int, int]) -> None:
    assert cache((2, 5), (4, 10), (7, 30)).end_offset_for(asked, 40) == answer


def test_an_empty_cache() -> None:
    assert EpochCache().end_offset_for(0, 0) == (-1, -1)
    assert EpochCache().last == -1
    assert EpochCache().epoch_at(0) == -1


def test_epochs_are_truncated_with_the_log() -> None:
    epochs = cache((2, 5), (4, 10), (7, 30))
    epochs.truncate_to(31)
    assert epochs.last == 7
    epochs.truncate_to(30)
    assert epochs.entries() == [(2, 5), (4, 10)]
    epochs.truncate_to(0)
    assert epochs.entries() == []


def test_the_start_moves_with_the_log() -> None:
    epochs = cache((2, 5), (4, 10), (7, 30))
    epochs.advance_start(4)
    assert epochs.entries() == [(2, 5), (4, 10), (7, 30)]
    epochs.advance_start(12)
    assert epochs.entries() == [(4, 10), (7, 30)]
    assert epochs.end_offset_for(3, 40) == (3, 12)
    epochs.advance_start(40)
    assert epochs.entries() == [(7, 30)]
    epochs.truncate_to(40)
    assert epochs.last == 7  # the log is empty, but its last epoch was 7


def test_which_epoch_wrote_an_offset() -> None:
    epochs = cache((2, 5), (4, 10))
    assert [epochs.epoch_at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 2, 2, 4, 4]


def test_a_cache_is_loaded_as_saved() -> None:
    epochs = cache((2, 5), (4, 10))
    assert EpochCache.load(epochs.dump()).entries() == epochs.entries()


@pytest.mark.parametrize(
    "data", [b"", b"1 2\n", write_state("leader-epochs", 2, []), write_state("leader-epochs", 1, ["x"])]
)
def test_an_invalid_file_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        EpochCache.load(data)


def test_any_flipped_bit_is_detected() -> None:
    good = cache((2, 5), (4, 10)).dump()
    for at in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[at] ^= 1 << bit
            with pytest.raises(Unreadable):
                EpochCache.load(bytes(bad))
