"""Zero-copy framing: a frame is a four-byte length and that many bytes, passed on as a slice of the receive buffer.

The transport reads directly into the buffer. A frame is a writable slice of that buffer, valid only during
`frame_received`; code that keeps bytes longer must copy them. Small frames arrive many per read. While a large frame is
incomplete, `get_buffer` offers the transport exactly the missing bytes: the frame then ends where the buffered data
ends, and nothing has to be moved. The buffer grows with the bytes received, never with the length a client declares.
"""

import asyncio
import struct
from typing import Final, cast

from tailrace.model.limits import FRAME_READ_BYTES

LENGTH_LAYOUT: Final = struct.Struct(">i")
LENGTH_BYTES: Final = LENGTH_LAYOUT.size
TLS_HANDSHAKE: Final = 0x1603  # the first two bytes of a TLS connection
BUFFER_START_BYTES: Final = 16 * 1024
BUFFER_KEPT_MAX_BYTES: Final = 2 * 1024 * 1024  # a larger buffer is released once its frames are handled


class FrameError(ValueError):
    """A frame length out of bounds: frame boundaries are lost, and the connection must be closed."""


def _refusal(length: int, frame_max_bytes: int) -> FrameError:
    if length >> 16 == TLS_HANDSHAKE:
        return FrameError("it begins with a TLS handshake, but this listener does not use TLS")
    return FrameError(f"a frame of {length} bytes; allowed are 1 to {frame_max_bytes}")


class FramedProtocol(asyncio.BufferedProtocol):
    """Base of both ends of a Kafka connection: cuts received bytes into frames, which the subclass handles."""

    def __init__(self, frame_max_bytes: int) -> None:
        self._frame_max_bytes = frame_max_bytes
        self._buffer = bytearray(BUFFER_START_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = 0  # first byte not yet passed to `frame_received`
        self._end = 0  # first byte not yet received
        self._wanted = 0  # size of the incomplete frame with its length prefix; 0: not known yet
        self.transport: asyncio.Transport | None = None
        self.paused = False  # when set, frames stay in the buffer until `resume_frames`

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def frame_received(self, frame: memoryview) -> None:
        """One frame without its length prefix; the slice is invalid after this returns."""
        raise NotImplementedError

    def frames_done(self) -> None:
        """All complete frames were passed to `frame_received`: the time to send batched responses."""

    def frame_refused(self, error: FrameError) -> None:
        """A frame length is out of bounds: close the connection."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._begin == self._end:
            self._begin = self._end = 0
            if len(self._buffer) > BUFFER_KEPT_MAX_BYTES:
                self._resize(BUFFER_START_BYTES)
        missing = self._wanted - (self._end - self._begin)
        if self._wanted > FRAME_READ_BYTES:
            self._make_room(min(missing, max(self._end - self._begin, FRAME_READ_BYTES)))
            return self._view[self._end : self._end + missing]
        if self._end == len(self._buffer):
            self._make_room(1)
        return self._view[self._end :]

    def buffer_updated(self, count: int) -> None:
        self._end += count
        if self._end == len(self._buffer) and self._end < FRAME_READ_BYTES:
            self._grow_to(2 * len(self._buffer))  # one read filled the buffer: allow larger reads
        self._cut_frames()

    @property
    def buffered_bytes(self) -> int:
        return self._end - self._begin

    def resume_frames(self) -> None:
        """Clear `paused` and pass on the frames that were buffered meanwhile."""
        self.paused = False
        self._cut_frames()

    def _cut_frames(self) -> None:
        view, begin, end = self._view, self._begin, self._end
        try:
            while not self.paused and end - begin >= LENGTH_BYTES:
                (length,) = LENGTH_LAYOUT.unpack_from(view, begin)
                if not 0 < length <= self._frame_max_bytes:
                    raise _refusal(length, self._frame_max_bytes)
                after = begin + LENGTH_BYTES + length
                if after > end:
                    self._wanted = LENGTH_BYTES + length
                    break
                self._begin = after
                self._wanted = 0
                self.frame_received(view[begin + LENGTH_BYTES : after])
                begin = after
        except FrameError as error:
            self._begin = self._end
            self.frame_refused(error)
        self.frames_done()

    def _make_room(self, count: int) -> None:
        """Make `count` bytes free after the buffered data: move the data to the front, or grow the buffer."""
        used = self._end - self._begin
        if self._end + count <= len(self._buffer):
            return
        if used + count > len(self._buffer):
            self._grow_to(max(2 * len(self._buffer), used + count))
        else:
            self._buffer[:used] = self._buffer[self._begin : self._end]
            self._begin, self._end = 0, used

    def _grow_to(self, size: int) -> None:
        kept = self._buffer[self._begin : self._end]
        self._resize(size)
        self._buffer[: len(kept)] = kept
        self._begin, self._end = 0, len(kept)

    def _resize(self, size: int) -> None:
        self._buffer = bytearray(size)  # not resized in place: slices of the old buffer may still be in use
        self._view = memoryview(self._buffer)
