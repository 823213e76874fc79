"""Frames in place: a four-byte length, then that many bytes, cut out of one receive buffer without copying.

The transport reads straight into our buffer. A frame is handed on as a writable slice of it that is valid only during
`frame_received`: whoever keeps bytes longer copies them. Small frames arrive many at a time; while a large one is under
way we ask the transport for exactly what is missing, so that it ends where the buffer's content ends and nothing is
moved.
The buffer grows with the bytes that really came, never with the length that a client claims.
"""

import asyncio
import struct
from typing import Final, cast

from tailrace.model.limits import FRAME_READ_BYTES

LENGTH_LAYOUT: Final = struct.Struct(">i")
LENGTH_BYTES: Final = LENGTH_LAYOUT.size
BUFFER_START_BYTES: Final = 16 * 1024
BUFFER_KEPT_MAX_BYTES: Final = 2 * 1024 * 1024  # a larger one is given back once its frame is done


class FrameError(ValueError):
    """A frame whose length cannot be: the connection has lost its place and must close."""


class FramedProtocol(asyncio.BufferedProtocol):
    """Base of both ends of a Kafka connection: subclasses take frames, this class finds them."""

    def __init__(self, frame_max_bytes: int) -> None:
        self._frame_max_bytes = frame_max_bytes
        self._buffer = bytearray(BUFFER_START_BYTES)
        self._view = memoryview(self._buffer)
        self._begin = 0  # first byte not yet handed on
        self._end = 0  # first byte not yet received
        self._wanted = 0  # size of the frame under way with its length, 0 when that is not known yet
        self.transport: asyncio.Transport | None = None
        self.paused = False  # when set, frames stay in the buffer until `resume_frames`

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def frame_received(self, frame: memoryview) -> None:
        """One frame without its length; the slice dies when this returns."""
        raise NotImplementedError

    def frames_done(self) -> None:
        """All frames that had arrived are handed on: the moment to send what was gathered."""

    def frame_refused(self, error: FrameError) -> None:
        """The stream is broken: close."""
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
            self._grow_to(2 * len(self._buffer))  # it came in fuller than we can hold: read more at once next time
        self._cut_frames()

    @property
    def buffered_bytes(self) -> int:
        return self._end - self._begin

    def resume_frames(self) -> None:
        """Hand on what waited while `paused` was set."""
        self.paused = False
        self._cut_frames()

    def _cut_frames(self) -> None:
        view, begin, end = self._view, self._begin, self._end
        try:
            while not self.paused and end - begin >= LENGTH_BYTES:
                (length,) = LENGTH_LAYOUT.unpack_from(view, begin)
                if not 0 < length <= self._frame_max_bytes:
                    raise FrameError(f"a frame of {length} bytes; allowed are 1 to {self._frame_max_bytes}")
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
        """Have at least `count` free bytes behind what is there: move it to the front, grow if that is too little."""
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
        self._buffer = bytearray(size)  # a new one: the old may still be seen through a slice
        self._view = memoryview(self._buffer)
