"""The minimal broker: a bound on what any broker could reach with librdkafka on this machine.

With small messages librdkafka needs more CPU than any broker. How much of a contest is the client's own cost shows only
against a server that does nearly nothing: it takes batches as they come, counts their records, writes them to a file,
and returns them, reading the next piece while the client parses the last. No checksum, no index, no state, no second
partition; one thread per connection.

It supports only versions from before the flexible encoding, which are simple to write by hand.
"""

import os
import socket
import struct
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.floor import REQUEST_MAX_BYTES, receive_request
from benchmarks.frames import text
from tailrace.model.limits import MiB

OFFERED: Final = {0: (3, 7), 1: (4, 4), 2: (1, 2), 3: (1, 4), 18: (0, 0), 19: (4, 4), 20: (3, 3)}
UNSUPPORTED: Final = 35
NODE: Final = 1
EARLIEST: Final = -2
OFFSET_DELTA_AT: Final = 23
ANSWER_BYTES: Final = MiB  # larger responses are slower here: ADR 0007
Answer = tuple[bytes, bytes | memoryview]  # the records come last, so they are sent without a copy


@dataclass(slots=True)
class Topic:
    file: int
    end: int = 0  # the offset after the last record
    offsets: list[int] = field(default_factory=list)  # of each batch
    positions: list[int] = field(default_factory=lambda: [0])  # of each batch, and where the next one will be

    def append(self, batch: memoryview) -> int:
        base = self.end
        struct.pack_into(">q", batch, 0, base)
        os.write(self.file, batch)
        self.offsets.append(base)
        self.positions.append(self.positions[-1] + len(batch))
        self.end += int(struct.unpack_from(">i", batch, OFFSET_DELTA_AT)[0]) + 1
        return base


@dataclass(slots=True, kw_only=True)
class Piece:
    """Complete batches of a topic: the response to one Fetch, and then, read ahead, to the next."""

    room: memoryview
    topic: Topic | None = None
    first: int = 0  # index of its first batch
    after: int = 0

    def hold(self, topic: Topic, offset: int) -> memoryview:
        first = bisect_right(topic.offsets, offset) - 1 if offset < topic.end else len(topic.offsets)
        if topic is not self.topic or first != self.first or first == self.after:
            self._read(topic, first)
        return self.room[: topic.positions[self.after] - topic.positions[self.first]]

    def _read(self, topic: Topic, first: int) -> None:
        self.topic, self.first, self.after = topic, first, first
        if first < len(topic.offsets):
            start = topic.positions[first]
            self.after = max(first + 1, bisect_right(topic.positions, start + ANSWER_BYTES) - 1)
            os.preadv(topic.file, [self.room[: topic.positions[self.after] - start]], start)

    def go_on(self) -> None:
        if self.topic is not None and self.first < self.after:
            self._read(self.topic, self.after)


class Fields:
    """Reads the fields of a request one after the other."""

    def __init__(self, data: memoryview) -> None:
        self.data: Final = data
        self.at = 4

    def take(self, form: str) -> int:
        value: int = struct.unpack_from(f">{form}", self.data, self.at)[0]
        self.at += struct.calcsize(f">{form}")
        return value

    def text(self) -> str:
        length = self.take("h")
        if length < 0:
            return ""
        self.at += length
        return bytes(self.data[self.at - length : self.at]).decode()

    def skip(self, count: int) -> None:
        self.at += count


class Least:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder: Final = folder
        self.port: Final = port
        self.topics: Final[dict[str, Topic]] = {}
        self.answers: Final[dict[int, Callable[[int, Fields, Piece], Answer]]] = {
            0: self.produce,
            1: self.fetch,
            2: self.list_offsets,
            3: self.metadata,
            18: self.api_versions,
            19: self.create_topic,
            20: self.delete_topic,
        }

    def serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = memoryview(bytearray(REQUEST_MAX_BYTES))
        piece = Piece(room=memoryview(bytearray(REQUEST_MAX_BYTES)))
        while size := receive_request(connection, request):
            fields = Fields(request[:size])
            api, version, correlation = fields.take("h"), fields.take("h"), fields.take("i")
            fields.text()  # client id
            head, records = self.answers[api](version, fields, piece)
            connection.sendall(struct.pack(">ii", 4 + len(head) + len(records), correlation) + head)
            connection.sendall(records)
            piece.go_on()

    def produce(self, version: int, fields: Fields, _: Piece) -> Answer:
        fields.text()  # transactional id
        fields.skip(2 + 4 + 4)  # acks, timeout, one topic
        topic = fields.text()
        fields.skip(4 + 4)  # one partition
        length = fields.take("i")
        base = self.topics[topic].append(fields.data[fields.at : fields.at + length])
        more = struct.pack(">q", 0) if version >= 5 else b""
        return struct.pack(">i", 1) + text(topic) + struct.pack(">iihqq", 1, 0, 0, base, -1) + more + bytes(4), b""

    def fetch(self, _: int, fields: Fields, piece: Piece) -> Answer:
        fields.skip(4 + 4 + 4 + 4 + 1)
        if not fields.take("i"):
            return struct.pack(">ii", 0, 0), b""
        topic = fields.text()
        fields.skip(4 + 4)
        offset = fields.take("q")
        found = self.topics[topic]
        records = piece.hold(found, offset)
        head = struct.pack(">ii", 0, 1) + text(topic)
        head += struct.pack(">iihqqii", 1, 0, 0, found.end, found.end, -1, len(records))
        return head, records

    def list_offsets(self, version: int, fields: Fields, _: Piece) -> Answer:
        fields.skip(4 + (1 if version >= 2 else 0) + 4)
        topic = fields.text()
        fields.skip(4 + 4)
        offset = 0 if fields.take("q") == EARLIEST else self.topics[topic].end
        throttle = bytes(4) if version >= 2 else b""
        return throttle + struct.pack(">i", 1) + text(topic) + struct.pack(">iihqq", 1, 0, 0, -1, offset), b""

    def metadata(self, version: int, _: Fields, __: Piece) -> Answer:
        throttle = bytes(4) if version >= 3 else b""
        cluster = text("least") if version >= 2 else b""
        broker = struct.pack(">ii", 1, NODE) + text("127.0.0.1") + struct.pack(">ih", self.port, -1)
        partition = struct.pack(">ihii", 1, 0, 0, NODE) + struct.pack(">iiii", 1, NODE, 1, NODE)
        topics = (struct.pack(">h", 0) + text(name) + b"\0" + partition for name in self.topics)
        count = struct.pack(">i", len(self.topics))
        return throttle + broker + cluster + struct.pack(">i", NODE) + count + b"".join(topics), b""

    def api_versions(self, version: int, _: Fields, __: Piece) -> Answer:
        ranges = (struct.pack(">hhh", api, low, high) for api, (low, high) in OFFERED.items())
        return struct.pack(">hi", UNSUPPORTED if version else 0, len(OFFERED)) + b"".join(ranges), b""

    def create_topic(self, _: int, fields: Fields, __: Piece) -> Answer:
        fields.skip(4)
        name = fields.text()
        self.topics[name] = Topic(os.open(self.folder / name, os.O_CREAT | os.O_RDWR | os.O_TRUNC))
        return struct.pack(">ii", 0, 1) + text(name) + struct.pack(">hh", 0, -1), b""

    def delete_topic(self, _: int, fields: Fields, __: Piece) -> Answer:
        fields.skip(4)
        name = fields.text()
        os.close(self.topics.pop(name).file)
        (self.folder / name).unlink()
        return struct.pack(">ii", 0, 1) + text(name) + struct.pack(">h", 0), b""


def main(folder: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    least = Least(folder, port)
    print(f"ready least={host}:{port}", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=least.serve, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
