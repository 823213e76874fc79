"""A topic of a million keys is cleaned while messages are produced at 500 per second: the memory of the cleaner's
process, and how long the producer waits.

The producer's latency is taken in windows; one counts if the pass went on until its end. Each size of values has a
broker of its own, as the highest memory of a process cannot be reset.
"""

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from benchmarks import cleaned, latency, ours
from benchmarks.cases import Start
from benchmarks.cleaned import KEYS, Cleaned, HeldByOurs
from benchmarks.connection import Refused, create_topic
from benchmarks.latency import Spread
from benchmarks.ours import Fsync
from benchmarks.outcomes import Outcome, Threshold
from benchmarks.processes import Server, children, measure
from tailrace.model.ids import show_id
from tailrace.model.limits import KiB
from tailrace.testing import Broker

FSYNC: Final[Fsync] = "never"
SIZES: Final = (100, KiB)
RATE: Final = 500
WINDOW_SECONDS: Final = 2.0
SAMPLE_SECONDS: Final = 0.02
MEMORY_MAX_MB: Final = (60_000_000 + 64 * KEYS) / 1e6
LEAST_MEMORY: Final = Threshold(of="value", at_most=MEMORY_MAX_MB)
SOON: Final = Threshold(of="value", at_most=100)


def cleaner(_: Start, folder: Path) -> Iterator[Outcome]:
    for size in SIZES:
        shown = f"{size} B" if size < KiB else f"{size // KiB} KB"
        with Broker(data_dir=folder / shown, fsync=FSYNC, **cleaned.SETTINGS) as broker:
            watched = Watched(full(ours.as_server(broker), folder, shown, size))
            spreads = watched.windows()
        name = f"cleaning {KEYS:,} keys, {shown} values"
        took = watched.done
        assert took is not None
        yield outcome(f"{name}: speed", "MB/s", [took.megabytes_per_second])
        yield outcome(f"{name}: the cleaner's process, at most", "MB", [watched.peak / 1e6], LEAST_MEMORY)
        yield outcome(f"{name}: produce at {RATE} msg/s meanwhile, p50", "ms", [one.p50_ms for one in spreads])
        yield outcome(f"{name}: produce at {RATE} msg/s meanwhile, p99", "ms", [one.p99_ms for one in spreads], SOON)


def full(server: Server, folder: Path, shown: str, size: int) -> HeldByOurs:
    requests = cleaned.encode(folder / "requests", "cleaned", size)
    topic_id = cleaned.create_held_back(server, "cleaned")
    cleaned.send(server, "cleaned", requests)
    requests.file.unlink()
    return HeldByOurs(server=server, topic="cleaned", folder=folder / shown / f"{show_id(topic_id)}-0")


class Watched:
    """A pass, and what is seen of it meanwhile."""

    def __init__(self, held: HeldByOurs) -> None:
        self._held = held
        self._ended = threading.Event()
        self.done: Cleaned | None = None
        self.peak = 0  # bytes of the largest worker process

    def windows(self) -> list[Spread]:
        """Let the cleaner go, and measure a producer's latency until it has done its work."""
        server = self._held.server
        found: list[Spread] = []
        threads = [threading.Thread(target=one) for one in (self._clean, self._sample)]
        for one in threads:
            one.start()
        while not self._ended.is_set():
            topic = f"steady-{len(found)}"
            create_topic(server.host, server.port, topic)
            work = latency.Work(
                host=server.host, port=server.port, topic=topic, acks=1, rate=RATE, seconds=WINDOW_SECONDS
            )
            spread = Spread(**measure("benchmarks.latency", work)["produce"])
            if not self._ended.is_set():
                found.append(spread)
        for one in threads:
            one.join()
        if self.done is None or not found:
            raise Refused(f"the pass failed, or took less than {WINDOW_SECONDS:g} s")
        return found

    def _clean(self) -> None:
        try:
            self.done = self._held.clean()
        finally:
            self._ended.set()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.peak = max([self.peak, *map(highest_resident_bytes, children(self._held.server.pid))])


def highest_resident_bytes(pid: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * KiB
    return 0


def outcome(name: str, unit: str, rounds: list[float], threshold: Threshold | None = None) -> Outcome:
    return Outcome(name=name, fsync=FSYNC, acks="1", unit=unit, rounds=tuple(rounds), threshold=threshold)
