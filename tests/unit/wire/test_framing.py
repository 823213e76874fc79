"""Frames are cut correctly whatever the read sizes, and a declared length alone allocates no memory."""

import random
import struct

import pytest

from tailrace.model.limits import FRAME_READ_BYTES, KiB, MiB
from tailrace.wire.framing import BUFFER_KEPT_MAX_BYTES, FramedProtocol, FrameError

FRAME_MAX_BYTES = 4 * MiB


class FrameCollector(FramedProtocol):
    """Records the frames it receives."""

    def __init__(self) -> None:
        super().__init__(FRAME_MAX_BYTES)
        self.frames: list[bytes] = []
        self.refused: list[FrameError] = []
        self.rounds = 0
        self.pause_after = -1

    def frame_received(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        frame[:] = bytes(len(frame))  # frames are writable, and writing must not affect the next frame
        if len(self.frames) == self.pause_after:
            self.paused = True

    def frames_done(self) -> None:
        self.rounds += 1

    def frame_refused(self, error: FrameError) -> None:
        self.refused.append(error)

    def feed(self, data: bytes, piece: int) -> None:
        """Deliver bytes as a transport does, at most `piece` at a time."""
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
    collector = FrameCollector()
    collector.feed(framed(*frames), piece)
    assert collector.frames == frames
    assert collector.buffered_bytes == 0


def test_frames_of_one_read_are_handled_in_one_batch() -> None:
    collector = FrameCollector()
    frames = [bytes([number]) * 10 for number in range(100)]
    collector.feed(framed(*frames), 1 << 30)
    assert collector.frames == frames
    assert collector.rounds == 1


@pytest.mark.parametrize("length", [0, -1, -(2**31), FRAME_MAX_BYTES + 1, 2**31 - 1])
def test_an_invalid_length_is_refused_and_nothing_after_it_is_read(length: int) -> None:
    collector = FrameCollector()
    collector.feed(framed(b"good") + struct.pack(">i", length) + framed(b"never"), 1 << 30)
    assert collector.frames == [b"good"]
    assert len(collector.refused) == 1


def test_a_declared_length_allocates_no_memory() -> None:
    collector = FrameCollector()
    collector.feed(struct.pack(">i", FRAME_MAX_BYTES) + b"x" * 100, 1 << 30)
    collector.get_buffer(-1)
    assert collector.capacity <= 2 * FRAME_READ_BYTES


def test_a_large_buffer_is_released() -> None:
    collector = FrameCollector()
    collector.feed(framed(b"x" * FRAME_MAX_BYTES), 1 << 30)
    assert collector.capacity > BUFFER_KEPT_MAX_BYTES
    collector.feed(framed(b"y"), 1 << 30)
    assert collector.capacity < BUFFER_KEPT_MAX_BYTES
    assert collector.frames[1] == b"y"


def test_paused_frames_wait_in_the_buffer() -> None:
    collector = FrameCollector()
    collector.pause_after = 2
    frames = [b"one", b"two", b"three", b"four"]
    collector.feed(framed(*frames), 1 << 30)
    assert collector.frames == frames[:2]
    collector.resume_frames()
    assert collector.frames == frames
