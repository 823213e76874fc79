"""A broker whose answers are damaged on their way: a proxy before a real one, which lets a test change each answer.

Our broker never serves a batch that does not fit its checksum, so damage is done behind it. Answers name the broker's
own address; the proxy puts its own in that place, so that clients stay with it.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from tailrace.pipeline.kafka.connection import HIGHEST_USED
from tailrace.records.opened import batches
from tailrace.wire.compile import decode_whole, encode
from tailrace.wire.messages.fetch import FetchResponse

Harm = Callable[[bytearray], None]
length = struct.Struct(">i")
HEADER_BYTES = 5  # of an answer: the correlation id, and no tags
fetch_version = HIGHEST_USED[1]


class DamagingProxy:
    def __init__(self, bootstrap: str, harm: Harm) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._broker, self._harm = (host, int(port)), harm
        self._door = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._door]
        self.bootstrap = f"127.0.0.1:{self._door.getsockname()[1]}"
        self._own = b"127.0.0.1" + length.pack(self._door.getsockname()[1])
        self._named = host.encode() + length.pack(int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                broker = socket.create_connection(self._broker)
                self._sockets += [client, broker]
                for work in (self._ask, self._answer):
                    threading.Thread(target=work, args=(client, broker), daemon=True).start()

    def _ask(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                broker.sendall(data)
            broker.shutdown(socket.SHUT_RDWR)

    def _answer(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError), broker.makefile("rb") as answers:
            while head := answers.read(length.size):
                body = bytearray(answers.read(length.unpack(head)[0]).replace(self._named, self._own))
                self._harm(body)
                client.sendall(length.pack(len(body)) + body)


@contextlib.contextmanager
def damaging(bootstrap: str, harm: Harm) -> Iterator[str]:
    """The address of a broker whose answers are changed by `harm`."""
    proxy = DamagingProxy(bootstrap, harm)
    try:
        yield proxy.bootstrap
    finally:
        proxy.close()


def emptied(mark: bytes, *, of_topics: bool = False, times: int = 1_000_000) -> Harm:
    """Takes the records out of answers to Fetch with `mark` in them, so many times; or all that they say of topics."""
    left = [times]

    def harm(body: bytearray) -> None:
        if mark not in body or not left[0]:
            return
        left[0] -= 1
        answer = decode_whole(FetchResponse, fetch_version, bytes(body), HEADER_BYTES)
        (topic,) = answer.topics
        bare = replace(topic, partitions=tuple(replace(one, records=memoryview(b"")) for one in topic.partitions))
        body[HEADER_BYTES:] = encode(replace(answer, topics=() if of_topics else (bare,)), fetch_version)

    return harm


def without(mark: bytes) -> Harm:
    """Takes the batch with `mark` in it out of answers to Fetch, as compaction does, or a broker that has lost it."""

    def harm(body: bytearray) -> None:
        if mark not in body:
            return
        answer = decode_whole(FetchResponse, fetch_version, bytes(body), HEADER_BYTES)
        (topic,) = answer.topics
        (one,) = topic.partitions
        kept = b"".join(batch for batch, _ in batches(one.records or b"") if mark not in bytes(batch))
        bare = replace(topic, partitions=(replace(one, records=memoryview(kept)),))
        body[HEADER_BYTES:] = encode(replace(answer, topics=(bare,)), fetch_version)

    return harm


def flipping(mark: bytes, *, at: int = 0, times: int = 1_000_000) -> Harm:
    """Flips a bit so many bytes behind `mark`, wherever it is in an answer, so many times."""
    left = [times]

    def harm(body: bytearray) -> None:
        place = body.find(mark)
        if place >= 0 and left[0]:
            left[0] -= 1
            body[place + at] ^= 4

    return harm
