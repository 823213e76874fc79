"""The floor: the least work that a program can do with the same bytes, as a bound for the broker.

Writing: receive a request, write it to a file, answer eight bytes. Reading: receive a request, read the next piece of
the file, send it. One process, one connection at a time, plain blocking sockets, whole requests with MSG_WAITALL: the
fastest of the variants tried. Over twelve noisy rounds its median was 1.08 GB/s; writing pieces as they arrive had 0.98
(no significant difference), uvloop with a buffered protocol 0.63.
It reads nothing but the length: no checksum, no index, no offsets, no second client.

Reading goes through a buffer (`pread` and `send`), not through `sendfile`: the broker must check what it sends, and
consumers that keep up are served from memory anyway.
"""

import json
import os
import socket
import struct
import sys
from dataclasses import asdict, dataclass
from typing import Final, Literal, get_args

from benchmarks.frames import CORRELATION_AT, SIZE_BYTES
from tailrace.model.limits import MiB

Mode = Literal["write", "read"]
REQUEST_MAX_BYTES: Final = 2 * MiB
PIECE_BYTES: Final = 8 * MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The requests and bytes of one connection."""

    requests: int
    bytes: int


def receive_request(connection: socket.socket, buffer: memoryview) -> int:
    """Read the next request into the buffer, including its size; 0 if the client has disconnected."""
    if connection.recv_into(buffer, SIZE_BYTES, socket.MSG_WAITALL) < SIZE_BYTES:
        return 0
    size: int = struct.unpack_from(">i", buffer)[0]
    connection.recv_into(buffer[SIZE_BYTES:], size, socket.MSG_WAITALL)
    return SIZE_BYTES + size


def write_all(connection: socket.socket, path: str) -> Moved:
    """Write every request to the file and answer it with its correlation id."""
    buffer = memoryview(bytearray(REQUEST_MAX_BYTES))
    answer = bytearray(struct.pack(">ii", 4, 0))
    requests = total = 0
    file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    while size := receive_request(connection, buffer):
        os.write(file, buffer[:size])
        answer[SIZE_BYTES:] = buffer[CORRELATION_AT : CORRELATION_AT + 4]
        connection.sendall(answer)
        requests += 1
        total += size
    os.close(file)
    return Moved(requests=requests, bytes=total)


def read_all(connection: socket.socket, path: str) -> Moved:
    """Answer every request with the next piece of the file; at its end, with an empty piece."""
    request = memoryview(bytearray(REQUEST_MAX_BYTES))
    piece = memoryview(bytearray(SIZE_BYTES + PIECE_BYTES))
    requests = position = 0
    file = os.open(path, os.O_RDONLY)
    while receive_request(connection, request):
        got = os.preadv(file, [piece[SIZE_BYTES:]], position)
        struct.pack_into(">i", piece, 0, got)
        connection.sendall(piece[: SIZE_BYTES + got])
        requests += 1
        position += got
    os.close(file)
    return Moved(requests=requests, bytes=position)


def serve_one(listener: socket.socket, mode: Mode, path: str) -> Moved:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection:
        return write_all(connection, path) if mode == "write" else read_all(connection, path)


def main(mode: Mode, path: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    print(f"ready floor={host}:{port}", flush=True)
    while True:
        print(json.dumps(asdict(serve_one(listener, mode, path))), flush=True)


if __name__ == "__main__":
    wanted: Mode = next(mode for mode in get_args(Mode) if mode == sys.argv[1])
    main(wanted, sys.argv[2])
