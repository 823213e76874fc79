"""Frames come out whole and in order however the bytes come in, and a length that lies costs no memory."""

import random
import struct

import pytest

from tailrace.model.limits import FRAME_READ_BYTES, KiB, MiB
from tailrace.wire.framing import BUFFER_KEPT_MAX_BYTES, FramedProtocol, FrameError

FRAME_MAX_BYTES = 4 * MiB


class Taker(FramedProtocol):
    """Keeps what it is handed."""

    def __init__(self) -> None:
        super().__init__(FRAME_MAX_BYTES)
        self.frames: list[bytes] = []
        self.refused: list[FrameError] = []
        self.rounds = 0
        self.pause_after = -1

    def frame_received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        frame[:] = bytes(len(frame))  # a slice is ours to write to: the next frames must not notice
        if len(self.frames) == self.pause_after:
            self.paused = True

    def frames_done(self) -> None:
        self.rounds += 1

    def frame_refused(self, error: FrameError) -> None:
        self.refused.append(error)

    def feed(self, data: bytes, piece: int) -> None:
        """Hand over bytes as a transport does, at most `piece` at a time."""
        while data:
            buffer = self.get_buffer(-1)
            assert len(buffer) > 0, "a transport needs room to read into"
            count = min(len(buffer), piece, len(data))
            buffer[:count] = data[:count]
            self.buffer_updated(count)
            data = data[count:]

    @property
    def capacity(self) -> int:
        return len(self._buffer)


def framed(*frames: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000, 1 << 30])
def test_frames_of_all_sizes_in_pieces_of_any_size(piece: int) -> None:
    chance = random.Random(piece)
    sizes = [1, 5, 100, 3, 20 * KiB, 1, 60, 9] if piece < 10 else [1, 300 * KiB, 7, 2 * MiB, 16 * KiB, 1, 3 * MiB, 2]
    frames = [chance.randbytes(size) for size in sizes]
    taker = Taker()
    taker.feed(framed(*frames), piece)
    assert taker.frames == frames
    assert taker.buffered_bytes == 0


def test_many_frames_of_one_read_are_one_round() -> None:
    taker = Taker()
    frames = [bytes([number]) * 10 for number in range(100)]
    taker.feed(framed(*frames), 1 << 30)
    assert taker.frames == frames
    assert taker.rounds == 1


@pytest.mark.parametrize("length", [0, -1, -(2**31), FRAME_MAX_BYTES + 1, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused_and_nothing_after_it_is_read(length: int) -> None:
    taker = Taker()
    taker.feed(framed(b"good") + struct.pack(">i", length) + framed(b"never"), 1 << 30)
    assert taker.frames == [b"good"]
    assert len(taker.refused) == 1


def test_a_claimed_length_takes_no_memory_before_the_bytes_come() -> None:
    taker = Taker()
    taker.feed(struct.pack(">i", FRAME_MAX_BYTES) + b"x" * 100, 1 << 30)
    taker.get_buffer(-1)
    assert taker.capacity <= 2 * FRAME_READ_BYTES


def test_a_large_buffer_is_given_back() -> None:
    taker = Taker()
    taker.feed(framed(b"x" * FRAME_MAX_BYTES), 1 << 30)
    assert taker.capacity > BUFFER_KEPT_MAX_BYTES
    taker.feed(framed(b"y"), 1 << 30)
    assert taker.capacity < BUFFER_KEPT_MAX_BYTES
    assert taker.frames[1] == b"y"


def test_paused_frames_wait_in_the_buffer() -> None:
    taker = Taker()
    taker.pause_after = 2
    frames = [b"one", b"two", b"three", b"four"]
    taker.feed(framed(*frames), 1 << 30)
    assert taker.frames == frames[:2]
    taker.resume_frames()
    assert taker.frames == frames
