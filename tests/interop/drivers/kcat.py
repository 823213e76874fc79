"""kcat: the command that people have at hand, on an older librdkafka (Debian's).

It has no admin calls but listing and asking for offsets; it cannot set timestamps, says nothing of whose they are,
and has one set of headers a run. Input is cut by delimiters that do not occur in the tests' bytes.
"""

import json
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.interop.client import DEADLINE_S, Client, Code, Refused
from tests.interop.messages import AS_USUAL, END, Headers, Message, Reader, Reading, Received, Sending
from tests.interop.shapes import TopicShape

AFTER_KEY = "\x1d\x1e key ends \x1e\x1d"
AFTER_MESSAGE = "\x1d\x1e message ends \x1e\x1d"
COMMON = {"client.id": "interop-kcat", "retry.backoff.ms": 10, "topic.metadata.refresh.fast.interval.ms": 10}
LINE_FORMAT = "%o %T %K %S %h\\n%k%s"
REFUSALS = {
    "Message size too large": Code.MESSAGE_TOO_LARGE,
    "Invalid topic": Code.INVALID_TOPIC_EXCEPTION,
    "Unknown topic or partition": Code.UNKNOWN_TOPIC_OR_PARTITION,
    "Offset out of range": Code.OFFSET_OUT_OF_RANGE,
}


def _options(settings: Mapping[str, object]) -> list[str]:
    return [part for name, setting in settings.items() for part in ("-X", f"{name}={setting}")]


def _refused(stderr: str) -> Refused:
    for text, code in REFUSALS.items():
        if f"Broker: {text}" in stderr:
            return Refused(code, stderr)
    return Refused(-1, stderr)


class KcatReader:
    """Reads the pipe: one line of numbers and headers, then as many bytes of key and value as it says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._process = process
        self._pipe = process.stdout.fileno()
        self._bytes = b""
        self._until = 0.0

    def take(self, count: int) -> list[Received]:
        self._until = time.monotonic() + DEADLINE_S
        return [self._one() for _ in range(count)]

    def _one(self) -> Received:
        while b"\n" not in self._bytes:
            self._more()
        line, _, self._bytes = self._bytes.partition(b"\n")
        offset, timestamp_ms, key_size, value_size, headers = line.decode().split(" ", 4)
        return Received(
            offset=int(offset),
            key=self._cut(int(key_size)),
            value=self._cut(int(value_size)),
            headers=_headers(headers),
            timestamp_ms=int(timestamp_ms),
            append_time=None,
        )

    def _cut(self, size: int) -> bytes | None:
        if size < 0:
            return None
        while len(self._bytes) < size:
            self._more()
        cut, self._bytes = self._bytes[:size], self._bytes[size:]
        return cut

    def _more(self) -> None:
        ready, _, _ = select.select([self._pipe], [], [], max(0.0, self._until - time.monotonic()))
        if not ready:
            raise TimeoutError(f"nothing from kcat in {DEADLINE_S} s")
        chunk = os.read(self._pipe, 1 << 20)
        if not chunk:
            _, stderr = self._process.communicate(timeout=DEADLINE_S)
            raise _refused(stderr.decode())
        self._bytes += chunk


def _headers(text: str) -> Headers:
    pairs = (item.partition("=") for item in text.split(",") if item)
    return tuple((name, None if value == "NULL" else value.encode()) for name, _, value in pairs)


class Kcat(Client):
    name = "kcat"
    also = frozenset({"TLS", "error when a name is bad", "error when topic is unknown", "null headers"})

    @classmethod
    def version(cls) -> str | None:
        if shutil.which("kcat") is None:
            return None
        told = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
        own, library = re.search(r"Version (\S+)", told), re.search(r"librdkafka ([0-9.]+)", told)
        assert own is not None
        assert library is not None
        return f"{own[1]} (librdkafka {library[1]})"

    def _command(self, *arguments: str) -> list[str]:
        secured = {} if self.tls is None else self.tls.of_librdkafka
        return ["kcat", "-b", self.bootstrap, *_options(COMMON | secured), *arguments]

    def _run(self, *arguments: str, stdin: bytes = b"") -> str:
        done = subprocess.run(self._command(*arguments), input=stdin, capture_output=True, timeout=DEADLINE_S)
        if done.returncode:
            raise _refused(done.stderr.decode())
        return done.stdout.decode()

    def produce(
        self, topic: str, messages: Sequence[Message], sending: Sending = AS_USUAL, partition: int = 0
    ) -> list[int]:
        headers = messages[0].headers
        assert all(message.headers == headers for message in messages)
        size = {} if sending.max_bytes is None else {"message.max.bytes": sending.max_bytes}
        idempotent = str(sending.idempotent).lower()
        settings = {"acks": sending.acks, "enable.idempotence": idempotent, "linger.ms": 5, **size}
        where = ["-t", topic, "-p", str(partition)]
        shape = [*where, "-z", sending.compression, "-Z", "-K", AFTER_KEY, "-D", AFTER_MESSAGE]
        for name, value in headers:
            shape += ["-H", name if value is None else f"{name}={value.decode()}"]
        lines = [(m.key or b"") + AFTER_KEY.encode() + (m.value or b"") + AFTER_MESSAGE.encode() for m in messages]
        self._run("-P", *shape, *_options(settings), stdin=b"".join(lines))
        return []

    @contextmanager
    def reader(self, topic: str, reading: Reading, partition: int = 0) -> Iterator[Reader]:
        first = "end" if reading.start == END else str(reading.start)
        settings = {
            "check.crcs": "true",
            "fetch.wait.max.ms": reading.wait_ms,
            "topic.auto.offset.reset": "error" if reading.reset == "none" else reading.reset,
            "isolation.level": "read_committed" if reading.committed_only else "read_uncommitted",
        }
        if reading.fetch_bytes is not None:
            settings["max.partition.fetch.bytes"] = reading.fetch_bytes
        command = self._command("-C", "-q", "-u", "-t", topic, "-p", str(partition), "-o", first, "-f", LINE_FORMAT)
        with subprocess.Popen(
            [*command, *_options(settings)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            try:
                yield KcatReader(process)
            finally:
                process.kill()

    def offset_at(self, topic: str, timestamp_ms: int, partition: int = 0) -> int:
        told = self._run("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}")
        found = re.search(r"offset (-?\d+)", told)
        assert found is not None, told
        return int(found[1])

    def watermarks(self, topic: str, partition: int = 0) -> tuple[int, int]:
        return self.offset_at(topic, -2, partition), self.offset_at(topic, -1, partition)

    def list_topics(self) -> list[str]:
        return [topic["topic"] for topic in json.loads(self._run("-L", "-J"))["topics"]]

    def describe_topic(self, topic: str) -> TopicShape:
        (found,) = json.loads(self._run("-L", "-J", "-t", topic))["topics"]
        partitions = found["partitions"]
        return TopicShape(
            partitions=tuple(partition["partition"] for partition in partitions),
            leaders=tuple(partition["leader"] for partition in partitions),
            replicas=tuple(tuple(node["id"] for node in partition["replicas"]) for partition in partitions),
            in_sync=tuple(tuple(node["id"] for node in partition["isrs"]) for partition in partitions),
        )
